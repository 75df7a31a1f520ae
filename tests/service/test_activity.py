"""What is kept of what was done: receipts, usage, savings, feedback and misses, over HTTP."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.agents import CATALOG, agents, done, opened, receipts
from tests.kit.pages import sign_in
from tests.kit.service import NOW_S, ServiceKit, codes, serving
from toolsearch.access.principals import Principal
from toolsearch.service.activity import activity
from toolsearch.tokens import count_json, default_counter, definition_tokens


async def usage(client: httpx2.AsyncClient, **asked: Any) -> dict[str, Any]:
    answer = await client.get("/v1/usage", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def misses(client: httpx2.AsyncClient) -> list[tuple[str, str, int]]:
    items = (await client.get("/v1/misses")).json()["items"]
    return [(each["query"], each["kind"], each["count"]) for each in items]


# Receipts


async def test_each_call_leaves_a_receipt_without_what_was_said(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        await done(client, f"sessions/{session}/calls", name="double", arguments={"n": 1})
        await done(client, "calls", name="fail", arguments={"n": 1})
        await done(client, "calls", name="double", arguments={"n": "secret-of-mine"})
        await client.post("/v1/calls", json={"name": "no_such"})
        await done(client, "calls", name="pay_bill")
        assert await receipts(client) == [
            ("pay_bill", "handed_back", "handed_back", ""),
            ("no_such", "refused", "refused", "unknown_tool"),
            ("double", "refused", "refused", "bad_arguments"),
            ("fail", "allowed", "tool_error", "tool_failed"),
            ("double", "allowed", "ok", ""),
        ]
        *_, first = (await client.get("/v1/receipts")).json()["items"]
        async with kit.service.corpora.using(CATALOG) as corpus:
            fingerprint = corpus.engine.catalog.get("double").definition.fingerprint()
        assert (first["session"], first["corpus"], first["fingerprint"]) == (session, "catalog/default", fingerprint)
        assert (first["at"], first["latency_ms"] >= 0) == ("2027-01-15T08:00:00Z", True)
        assert first["request_id"].startswith("req_")
        assert "secret-of-mine" not in (await client.get("/v1/receipts")).text


async def test_receipts_are_filtered_and_come_in_pages(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        for n in range(3):
            await done(client, "calls", name="double", arguments={"n": n})
        await done(client, "calls", name="fail", arguments={"n": 1})
        assert len(await receipts(client, tool="double")) == 3
        page = (await client.get("/v1/receipts?limit=3")).json()
        rest = (await client.get("/v1/receipts", params={"limit": 3, "after": page["next"]})).json()
        ids = [each["id"] for each in (*page["items"], *rest["items"])]
        assert ids == sorted(ids, reverse=True)
        assert (len(set(ids)), rest["next"]) == (4, None)


async def test_a_key_without_the_scope_admin_sees_its_own_calls_alone(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        caller = kit.client(kit.key("default", "call", "search"))
        await done(client, "calls", name="double", arguments={"n": 1})
        await done(caller, "calls", name="fail", arguments={"n": 1})
        assert [tool for tool, *_ in await receipts(caller)] == ["fail"]
        assert [tool for tool, *_ in await receipts(client)] == ["fail", "double"]
        assert [tool for tool, *_ in await receipts(client, mine=True)] == ["double"]
        others = (await client.get("/v1/receipts?mine=true")).json()["items"][0]["key"]
        assert codes([await caller.get(f"/v1/receipts?key={others}")]) == [(403, "not_permitted")]
        assert codes([await caller.get(f"/v1/usage?key={others}")]) == [(403, "not_permitted")]
        assert await receipts(kit.client(kit.key("other"))) == []


# Usage and savings


async def test_usage_is_added_up_by_key_session_and_time(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        await done(client, "search", queries=["book a flight", "quark soup recipe"])
        await done(client, f"sessions/{session}/search", queries=["pay a bill"])
        await done(client, f"sessions/{session}/calls", name="fail", arguments={"n": 1})
        await done(client, "calls", name="pay_bill")
        kit.clock.now_s = NOW_S + 3_600
        other = kit.client(kit.key("default", "search"))
        await done(other, "search", queries=["book a flight"])

        by_key = await usage(client, by="key")
        assert [row["searches"] for row in by_key["items"]] in ([3, 1], [1, 3])
        total = by_key["total"]
        assert (total["searches"], total["weak_searches"]) == (4, 1)
        assert (total["calls"], total["failed_calls"], total["handed_back_calls"]) == (2, 1, 1)
        by_hour = await usage(client, by="hour")
        assert [(row["group"], row["searches"]) for row in by_hour["items"]] == [
            ("2027-01-15T08:00:00Z", 3),
            ("2027-01-15T09:00:00Z", 1),
        ]
        by_session = {row["group"]: row for row in (await usage(client, by="session"))["items"]}
        assert (by_session[session]["searches"], by_session[session]["calls"]) == (1, 1)
        assert (await usage(other))["total"]["searches"] == 1
        assert (await usage(client, until="2027-01-15T08:30:00Z"))["total"]["searches"] == 3


async def test_savings_set_what_was_sent_against_every_definition_in_reach(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        for _ in range(2):
            await client.get(f"/v1/sessions/{session}/tools")
        answer = (await client.get("/v1/savings?by=session")).json()
        async with kit.service.corpora.using(CATALOG) as corpus:
            everything = 2 * corpus.engine.view(Principal("default").reach).tokens
            own = corpus.engine.sessions.peek(session, owner="default").counters.sent_tokens
        (row,) = answer["items"]
        assert (row["group"], row["requests"]) == (session, 2)
        assert (row["sent_tokens"], row["all_tools_tokens"]) == (own, everything)
        assert row["saved_tokens"] == everything - own
        assert any("estimate" in note for note in answer["notes"])
        counted = (await client.get(f"/v1/sessions/{session}/savings")).json()
        assert (counted["requests"], counted["sent_tokens"], counted["is_estimate"]) == (2, own, False)


COUNTER = default_counter()


def listed_tokens(listed: list[dict[str, Any]]) -> int:
    """What definitions take in the tools of a request in OpenAI's format."""
    sent = [each["function"] for each in listed]
    return sum(
        count_json(
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}, COUNTER
        )
        for each in sent
    )


async def faces(kit: ServiceKit, client: httpx2.AsyncClient, session: str) -> list[dict[str, Any]]:
    """What each route says of what *session*, the only one, has cost."""
    of_session = (await client.get(f"/v1/sessions/{session}/savings")).json()
    (row,) = (await client.get("/v1/savings?by=session")).json()["items"]
    total = (await client.get("/v1/savings?by=key")).json()["total"]
    names = ("requests", "sent_tokens", "written_tokens", "all_tools_tokens", "saved_tokens", "saved_share")
    found = [{name: each[name] for name in names} for each in (of_session, row, total)]
    used = (await usage(client, by="day"))["total"]
    assert {name: used[name] for name in names[:4]} == {name: found[0][name] for name in names[:4]}
    browser = kit.client()
    await sign_in(browser, kit.operator)
    first = found[0]
    page, usage_page = [(await browser.get(f"/pages/{path}")).text for path in (f"sessions/{session}", "usage")]
    if first["saved_share"] is None:
        assert "not known before" in page
        assert "no model request with" in usage_page
    else:
        share = f"{first['saved_share'] * 100:.0f} % of"
        assert f"<dd>{first['saved_tokens']:,}</dd>" in page
        assert f"{share} {first['all_tools_tokens']:,}, in {first['requests']} request" in page
        assert share in usage_page
        assert f"{share} 0" not in page + usage_page
    return found


async def test_every_face_says_the_same_of_what_a_session_was_really_sent(tmp_path: Path) -> None:
    """The session is opened, searched, and asked for its tools; then the model searches, and is sent them once more."""
    async with agents(tmp_path) as (kit, client):
        session = await opened(client)
        async with kit.service.corpora.using(CATALOG) as corpus:
            definitions = corpus.engine.view(Principal("default").reach).definitions
        everything = sum(definition_tokens(each, COUNTER) for each in definitions)
        sent = history = written = 0

        async def searched() -> None:
            nonlocal history, written
            asked = {"queries": ["pay a bill"]}
            answer = await done(client, f"sessions/{session}/search", **asked)
            written += count_json(asked, COUNTER)
            history += count_json(asked, COUNTER) + COUNTER.count(answer["text"])

        async def requested() -> None:
            nonlocal sent
            listed = (await client.get(f"/v1/sessions/{session}/tools")).json()["tools"]
            sent += listed_tokens(listed) + history

        async def costs() -> dict[str, Any]:
            first, *others = await faces(kit, client, session)
            assert others == [first, first]
            return first

        def expected(requests: int, needed: int) -> dict[str, Any]:
            """Of so many *requests*, of which so many were *needed* without a search, too."""
            saved = needed * everything - sent - written
            return {
                "requests": requests,
                "sent_tokens": sent,
                "written_tokens": written,
                "all_tools_tokens": needed * everything,
                "saved_tokens": saved,
                "saved_share": saved / (needed * everything) if needed else None,
            }

        await searched()
        assert await costs() == expected(0, 0)
        await requested()
        assert await costs() == expected(1, 1)
        await searched()
        assert await costs() == expected(1, 1)
        await requested()
        assert await costs() == expected(2, 1)
        await requested()
        assert await costs() == expected(3, 2)
        rounds = (await client.get(f"/v1/sessions/{session}/savings")).json()["search_rounds"]
        assert rounds == 1


async def test_figures_are_there_after_a_restart(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        await done(client, "search", queries=["book a flight"])
        token = kit.key("default")
    async with serving(tmp_path) as kit:
        assert (await usage(kit.client(token)))["total"]["searches"] == 1


# Misses and feedback


async def test_requests_that_nothing_fits_are_listed_the_most_frequent_first(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        await done(client, "search", queries=["quark soup recipe", "paint a wall", "book a flight", "select:no_such"])
        session = await opened(client)
        await done(client, f"sessions/{session}/search", queries=["Paint  a wall"])
        found = await misses(client)
        assert [(query, count) for query, _, count in found] == [("Paint a wall", 2), ("quark soup recipe", 1)]


async def test_a_miss_can_be_forgotten(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        await done(client, "search", queries=["quark soup recipe"])
        forget = "/v1/misses?query=quark%20soup%20recipe"
        assert (await client.delete(forget)).status_code == 204
        assert await misses(client) == []
        assert codes([await client.delete(forget)]) == [(404, "not_found")]


async def test_misses_hold_nothing_that_looks_like_a_credential(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        await done(
            client, "search", queries=["quark soup with password: hunter2x9 please", "soup sk-abcdefghij0123456789k"]
        )
        text = (await client.get("/v1/misses")).text
        assert "quark soup with password:" in text
        assert "hunter2x9" not in text
        assert "sk-abcdefghij0123456789k" not in text


async def test_misses_can_be_switched_off(tmp_path: Path) -> None:
    async with agents(tmp_path, activity={"keep_queries": False}) as (_, client):
        await done(client, "search", queries=["quark soup recipe"])
        assert await misses(client) == []
        assert (await usage(client))["total"]["weak_searches"] == 1


async def test_misses_of_an_hour_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MISSES_PER_HOUR", 2)
    async with agents(tmp_path) as (kit, client):
        await done(client, "search", queries=["quark soup", "paint walls", "wash dogs"])
        assert len(await misses(client)) == 2
        kit.clock.now_s -= 172_800
        await done(client, "search", queries=["wash dogs"])
        assert len(await misses(client)) == 2
        kit.clock.now_s += 172_800
        kit.steady.now_s += 3_600
        await done(client, "search", queries=["wash dogs"])
        assert len(await misses(client)) == 3


async def test_misses_come_in_pages_of_one_corpus_and_one_tenant(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        await done(client, "search", queries=["quark soup", "paint walls", "wash dogs"])
        page = (await client.get("/v1/misses?limit=2")).json()
        rest = (await client.get("/v1/misses", params={"limit": 2, "after": page["next"]})).json()
        queries = [each["query"] for each in (*page["items"], *rest["items"])]
        assert sorted(queries) == ["paint walls", "quark soup", "wash dogs"]
        assert (await client.get("/v1/misses?catalog=other")).json()["items"] == []
        assert await misses(kit.client(kit.key("other"))) == []
        assert codes([await client.get("/v1/misses?catalog=a&toolset=b")]) == [(400, "bad_request")]


async def test_what_is_said_to_be_right_is_learnt_from_in_its_tenant(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        answer = await client.post(
            "/v1/feedback", json={"query": "money for a flight", "tool": "pay_bill", "outcome": "right"}
        )
        assert answer.status_code == 204, answer.text
        async with kit.service.corpora.using(CATALOG) as corpus:
            usage_log = corpus.engine.usage
            assert usage_log is not None
            learnt = {(each.term, each.tool) for each in usage_log.inspect("default")}
            assert ("flight", "pay_bill") in learnt
            assert usage_log.inspect("other") == []


async def test_what_is_said_to_be_wrong_or_missing_is_a_miss(tmp_path: Path) -> None:
    async with agents(tmp_path) as (_, client):
        await client.post("/v1/feedback", json={"query": "fly home", "tool": "book_flight", "outcome": "wrong"})
        await client.post("/v1/feedback", json={"query": "wash dogs", "outcome": "not_found"})
        assert sorted(await misses(client)) == [("fly home", "not right", 1), ("wash dogs", "nothing found", 1)]


async def test_feedback_names_a_tool_in_reach_or_none(tmp_path: Path) -> None:
    async with agents(tmp_path) as (kit, client):
        narrow = kit.client(kit.key("default", "feedback", deny=["pay_bill"]))
        searcher = kit.client(kit.key("default", "search"))
        right = {"query": "pay", "tool": "pay_bill", "outcome": "right"}
        answers = [
            await narrow.post("/v1/feedback", json=right),
            await client.post("/v1/feedback", json={**right, "tool": "no_such"}),
            await client.post("/v1/feedback", json={"query": "pay", "outcome": "right"}),
            await client.post("/v1/feedback", json={**right, "outcome": "not_found"}),
            await searcher.post("/v1/feedback", json=right),
        ]
        assert codes(answers) == [
            (404, "unknown_tool"),
            (404, "unknown_tool"),
            (422, "bad_request"),
            (422, "bad_request"),
            (403, "not_permitted"),
        ]
