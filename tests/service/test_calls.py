"""Calls over HTTP: run by the service, handed back to who lists the tool, and whole replies of models."""

import json
from pathlib import Path
from typing import Any

from tests.kit.agents import CATALOG, THEIRS, agents, done, opened, receipts
from tests.kit.service import codes
from toolsearch import ToolDefinition
from toolsearch.tools.function_tools import tool_from_function

SEARCH = "toolSearchTool"


async def test_a_tool_that_the_service_runs_answers_as_mcp_has_it(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        answer = await done(client, "calls", name="double", arguments={"n": 21})
        assert (answer["status"], answer["is_error"], answer["code"]) == ("done", False, None)
        assert answer["structured_content"] == {"twice": 42}
        assert answer["content"] == [{"type": "text", "text": '{"twice":42}'}]


async def test_structured_content_over_http_need_not_be_an_object(tmp_path: Path) -> None:
    """Older MCP clients take only objects there, and HTTP has no such rule."""

    def count(to: int) -> list[int]:
        """Count from one."""
        return list(range(1, to + 1))

    async with agents(tmp_path) as (kit, client), kit.service.corpora.using(CATALOG) as corpus:
        corpus.engine.catalog.put(tool_from_function(count))
        assert (await done(client, "calls", name="count", arguments={"to": 3}))["structured_content"] == [1, 2, 3]


async def test_a_search_in_a_session_tells_what_the_service_runs_from_what_lives_with_the_caller(
    tmp_path: Path,
) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        found = await done(client, f"sessions/{session}/search", queries=["select:double,book_flight"])

    assert {tool["name"]: tool["runs_here"] for tool in found["answers"][0]["tools"]} == {
        "double": True,
        "book_flight": False,
    }


async def test_what_a_model_should_read_of_a_failure_is_a_result(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        failed = await done(client, "calls", name="fail", arguments={"n": 3})
        assert (failed["is_error"], failed["code"]) == (True, "tool_failed")
        wrong = await done(client, "calls", name="double", arguments={"n": "x"})
        assert (wrong["is_error"], wrong["code"]) == (True, "bad_arguments")
        raw = '{"name": "double", "arguments": {"n": 1e400}}'
        endless = await client.post("/v1/calls", content=raw, headers={"content-type": "application/json"})
        assert endless.json()["code"] == "bad_arguments"


async def test_a_call_over_the_limit_of_its_tool_is_a_result_that_says_when_to_try_again(tmp_path: Path) -> None:
    """Each key has its own count, over all faces and corpora."""
    rates = {"tools": {"doubling": {"tools": ["double"], "per_minute": 1}}}
    async with agents(tmp_path, rates=rates) as (kit, client):
        other = kit.client(kit.key("default"))
        answers = [await done(each, "calls", name="double", arguments={"n": 1}) for each in (client, client, other)]
        kit.steady.now_s += 60
        session = await opened(client)
        later = [await done(client, f"sessions/{session}/calls", name="double", arguments={"n": 1}) for _ in "ab"]

    assert [each["code"] for each in (*answers, *later)] == [None, "rate_limited", None, None, "rate_limited"]
    assert answers[1]["content"][0]["text"].endswith("the call was not sent: retry after 60 s")


async def test_a_call_of_a_tool_that_lives_with_the_caller_is_handed_back_checked(tmp_path: Path) -> None:
    definition = ToolDefinition("book_flight", THEIRS[0]["description"], THEIRS[0]["input_schema"])
    async with agents(tmp_path) as (_, client):
        answer = await done(client, "calls", name="book_flight", arguments={"city": "Oslo"})
        assert answer["status"] == "handed_back"
        assert answer["arguments"] == {"city": "Oslo"}
        assert answer["fingerprint"] == definition.fingerprint()
        assert answer["id"].startswith("call_")
        wrong = await done(client, "calls", name="book_flight", arguments={})
        assert (wrong["status"], wrong["code"]) == ("done", "bad_arguments")


async def test_the_end_of_a_handed_back_call_is_reported_once(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        answer = await done(client, f"sessions/{session}/calls", name="pay_bill")
        report = f"/v1/calls/{answer['id']}/result"
        other = kit.client(kit.key("other"))
        assert codes([await other.post(report, json={"is_error": True})]) == [(404, "not_found")]
        assert (await client.post(report, json={"is_error": True})).status_code == 204
        assert codes([await client.post(report, json={})]) == [(404, "not_found")]
        assert await receipts(client, session=session) == [
            ("pay_bill", "handed_back", "tool_error", "tool_failed"),
            ("pay_bill", "handed_back", "handed_back", ""),
        ]
        counts = (await client.get(f"/v1/sessions/{session}")).json()["counts"]
        assert (counts["calls"], counts["failed_calls"]) == (1, 1)


async def test_what_is_out_of_reach_of_key_or_session_is_not_called(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client, deny=["double"])
        narrow = kit.client(kit.key("default", "search", "call", deny=["fail"]))
        narrows = await opened(narrow)
        answers = [
            await client.post("/v1/calls", json={"name": "no_such"}),
            await client.post(f"/v1/sessions/{session}/calls", json={"name": "double", "arguments": {"n": 1}}),
            await client.post("/v1/calls", json={"session": session, "name": "double", "arguments": {"n": 1}}),
            await narrow.post("/v1/calls", json={"name": "fail", "arguments": {"n": 1}}),
            await narrow.post(f"/v1/sessions/{narrows}/calls", json={"name": "fail", "arguments": {"n": 1}}),
        ]
        assert codes(answers) == [(404, "unknown_tool")] * 5
        assert (await done(client, f"sessions/{session}/calls", name="fail", arguments={"n": 1}))["is_error"]


async def test_a_session_is_called_by_its_id_alone_and_counts_its_calls(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        both = await client.post("/v1/calls", json={"session": session, "catalog": "default", "name": "double"})
        assert codes([both]) == [(422, "bad_request")]
        await done(client, "calls", session=session, name="double", arguments={"n": 1})
        await done(client, f"sessions/{session}/calls", name="fail", arguments={"n": 1})
        counts = (await client.get(f"/v1/sessions/{session}")).json()["counts"]
        assert (counts["calls"], counts["failed_calls"]) == (2, 1)


async def test_the_search_tool_is_called_as_any_other(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        answer = await done(client, f"sessions/{session}/calls", name=SEARCH, arguments={"queries": ["book a flight"]})
        assert answer["structured_content"]["tools"] == ["book_flight"]
        assert "cannot be called" not in answer["content"][0]["text"]
        wrong = await client.post(f"/v1/sessions/{session}/calls", json={"name": SEARCH, "arguments": {"q": "x"}})
        assert codes([wrong]) == [(400, "bad_query")]


async def test_calls_need_their_scope(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        searcher = kit.client(kit.key("default", "search"))
        answers = [
            await searcher.post("/v1/calls", json={"name": "double", "arguments": {"n": 1}}),
            await searcher.post(f"/v1/sessions/{session}/execute", json={"reply": []}),
            await searcher.post("/v1/calls/call_1/result", json={}),
        ]
        assert codes(answers) == [(403, "not_permitted")] * 3


async def test_a_key_that_may_call_may_not_search_by_calling_the_search_tool(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        key = kit.key("default", "call")
        session, caller = await kit.session_of(key), kit.client(key)
        by_name = await caller.post(
            f"/v1/sessions/{session}/calls", json={"name": SEARCH, "arguments": {"queries": ["flight"]}}
        )
        assert codes([by_name]) == [(403, "not_permitted")]
        reply = openai_reply(("a", SEARCH, {"queries": ["flight"]}), ("b", "double", {"n": 1}))
        executed = await done(caller, f"sessions/{session}/execute", reply=reply)
        refused, doubled = (each["content"] for each in executed["messages"])
        assert "book_flight" not in refused
        assert doubled == '{"twice":2}'
        assert (await client.get(f"/v1/sessions/{session}/active")).json()["items"] == []


async def test_calls_in_a_minute_are_limited(tmp_path: Path) -> None:
    async with agents(tmp_path, rates={"calls": 1}) as (_, client):
        await done(client, "calls", name="double", arguments={"n": 1})
        again = await client.post("/v1/calls", json={"name": "double", "arguments": {"n": 1}})
        assert codes([again]) == [(429, "too_many")]
        assert int(again.headers["retry-after"]) == 60


async def test_a_repeated_request_with_the_same_idempotency_key_runs_the_tool_once(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        headers = {"idempotency-key": "one"}
        for _ in range(2):
            answer = await client.post("/v1/calls", json={"name": "double", "arguments": {"n": 2}}, headers=headers)
            assert answer.json()["structured_content"] == {"twice": 4}
        assert await receipts(client) == [("double", "allowed", "ok", "")]


# Whole replies


def openai_reply(*calls: tuple[str, str, dict[str, Any]], finish: str = "tool_calls") -> dict[str, Any]:
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }  # fmt: skip


async def test_the_calls_of_a_reply_are_answered_in_its_format_and_order(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        await client.get(f"/v1/sessions/{session}/tools?format=openai")
        reply = openai_reply(
            ("a", "double", {"n": 4}),
            ("b", SEARCH, {"queries": ["book a flight"]}),
            ("c", "no_such", {}),
            ("d", SEARCH, {"queries": []}),
        )
        executed = await done(client, f"sessions/{session}/execute", reply=reply)
        assert [(each["role"], each["tool_call_id"]) for each in executed["messages"]] == [
            ("tool", "a"), ("tool", "b"), ("tool", "c"), ("tool", "d"),
        ]  # fmt: skip
        texts = [each["content"] for each in executed["messages"]]
        assert texts[0] == '{"twice":8}'
        assert "book_flight" in texts[1]
        assert "no_such" in texts[2]
        assert "queries must be" in texts[3]
        assert executed["handed_back"] == []
        active = (await client.get(f"/v1/sessions/{session}/active")).json()["items"]
        assert [tool["name"] for tool in active] == ["book_flight"]


async def test_calls_of_a_reply_that_the_caller_runs_are_handed_back_beside_the_answers(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        blocks = [
            {"type": "tool_use", "id": "t1", "name": "book_flight", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "t2", "name": "double", "input": {"n": 5}},
        ]
        reply = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"}
        executed = await done(client, f"sessions/{session}/execute", reply=reply)
        (message,) = executed["messages"]
        assert [block["tool_use_id"] for block in message["content"]] == ["t2"]
        (back,) = executed["handed_back"]
        assert (back["call_id"], back["name"], back["arguments"]) == ("t1", "book_flight", {"city": "Oslo"})


async def test_a_reply_that_did_not_finish_runs_nothing(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        reply = openai_reply(("a", "double", {"n": 4}), ("b", SEARCH, {"queries": ["flight"]}), finish="length")
        executed = await done(client, f"sessions/{session}/execute", reply=reply)
        assert all("did not finish" in each["content"] for each in executed["messages"])
        assert await receipts(client) == []


async def test_what_is_no_reply_is_refused(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        session = await opened(client)
        wrong = await client.post(f"/v1/sessions/{session}/execute", json={"reply": {"hello": "world"}})
        assert codes([wrong]) == [(422, "bad_arguments")]
        empty = await done(client, f"sessions/{session}/execute", reply=[])
        assert empty == {"messages": [], "handed_back": []}
