"""Sessions over HTTP: one request opens an endpoint for an agent, and the session is there until it expires."""

from pathlib import Path
from typing import Any, NoReturn

import httpx2
import pytest

from tests.kit.service import NOW_S, ServiceKit, codes, serving
from toolsearch.errors import Kept, StorageError
from toolsearch.service.sessions import sessions as sessions_module
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sessions import SqlSessionPersistence

SEARCH = "toolSearchTool"
ALWAYS_SEARCH: dict[str, Any] = {"pass_through": {"max_tools": 0}}
TOOLS = [
    {"name": "send_mail", "description": "Send an email message."},
    {"name": "list_events", "description": "List the events of a calendar on a day."},
    {"name": "convert_time", "description": "Convert an hour from one time zone to another."},
    {"name": "pay_bill", "description": "Pay a bill with money."},
]


async def opened(client: httpx2.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    session: str = answer.json()["id"]
    return session


async def names(client: httpx2.AsyncClient, session: str) -> list[str]:
    """What the model reads in a request of the Anthropic SDK."""
    tools = (await client.get(f"/v1/sessions/{session}/tools?format=openai")).json()["tools"]
    return [entry["function"]["name"] for entry in tools]


async def do(client: httpx2.AsyncClient, session: str, act: str, *tools: str) -> dict[str, Any]:
    answer = await client.post(f"/v1/sessions/{session}/{act}", json={"names": tools} if tools else None)
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


async def ready(kit: ServiceKit) -> httpx2.AsyncClient:
    await kit.catalog(kit.operator, tools=TOOLS)
    return kit.client(kit.operator)


async def test_one_request_gives_an_agent_an_endpoint(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        answer = await client.post("/v1/sessions", json={"ttl_s": 60})
        session = answer.json()["id"]
        base = f"http://127.0.0.1:8080/v1/sessions/{session}"
        assert answer.status_code == 201
        assert session.startswith("ses_")
        assert answer.json() == {
            "id": session,
            "mcp_url": f"{base}/mcp",
            "tools_url": f"{base}/tools",
            "expires_at": "2027-01-15T08:01:00Z",  # a minute after NOW_S
        }


async def test_urls_are_below_the_public_url_of_the_settings(tmp_path: Path) -> None:
    async with serving(tmp_path, serve={"public_url": "https://tools.acme.example/"}) as kit:
        client = await ready(kit)
        answer = (await client.post("/v1/sessions", json={})).json()
        assert answer["tools_url"] == f"https://tools.acme.example/v1/sessions/{answer['id']}/tools"


@pytest.mark.parametrize(
    ("wire_format", "name_of"),
    [
        ("openai", lambda entry: entry["function"]["name"]),
        ("openai-responses", lambda entry: entry["name"]),
        ("anthropic", lambda entry: entry["name"]),
        ("mcp", lambda entry: entry["name"]),
    ],
)
async def test_tools_come_ready_for_the_call_of_an_sdk_in_each_format(
    tmp_path: Path, wire_format: str, name_of: Any
) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client, pins=["pay_bill"], exposure="append")
        answer = await client.get(f"/v1/sessions/{session}/tools", params={"format": wire_format})
        assert [name_of(entry) for entry in answer.json()["tools"]] == [SEARCH, "pay_bill"]
        assert answer.headers["x-toolsearch-tools"] == "4->2"
        assert answer.headers["cache-control"] == "no-store"


async def test_the_model_is_named_where_the_request_names_it(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        answer = await client.get(f"/v1/sessions/{session}/tools?format=openai&model=gpt-4o")
        assert answer.json()["model"] == "gpt-4o"


async def test_a_search_adds_what_it_finds_to_what_the_model_is_sent(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        found = await client.post(
            f"/v1/sessions/{session}/search", json={"queries": ["send mail", "select:pay_bill,no"]}
        )
        assert found.status_code == 200
        mail, bill = found.json()["answers"]
        assert [(tool["name"], tool["is_loaded"]) for tool in mail["tools"]] == [("send_mail", True)]
        assert (bill["not_found"], [tool["name"] for tool in bill["tools"]]) == (["no"], ["pay_bill"])
        assert "No tool is named no." in found.json()["text"]
        assert await names(client, session) == [SEARCH, "send_mail", "pay_bill"]


async def test_a_query_that_cannot_be_searched_for_is_the_callers_fault(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        session = await opened(client)
        answers = [
            await client.post(f"/v1/sessions/{session}/search", json=body)
            for body in ({"queries": ["/(/"]}, {"queries": []}, {"queries": ["mail"], "server": "no"})
        ]
        assert codes(answers) == [(400, "bad_pattern"), (422, "bad_request"), (400, "bad_query")]


async def test_tools_are_expanded_pinned_and_evicted_by_name(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        expanded = await do(client, session, "expand", "pay_bill", "no_such")
        assert expanded == {"names": ["pay_bill"], "not_found": ["no_such"], "too_long": []}
        assert (await do(client, session, "pin", "send_mail"))["names"] == ["send_mail"]
        assert (await do(client, session, "evict", "send_mail", "pay_bill"))["names"] == ["pay_bill"]
        assert (await do(client, session, "unpin", "send_mail"))["names"] == ["send_mail"]
        assert (await do(client, session, "evict", "send_mail"))["names"] == ["send_mail"]
        active = (await client.get(f"/v1/sessions/{session}/active")).json()
        assert active == {"items": [], "next": None}


async def test_a_session_says_what_is_active_and_what_could_be(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client, pins=["pay_bill"], deny=["convert_time"], budget={"tools": 7})
        await client.post(f"/v1/sessions/{session}/search", json={"queries": ["email"]})

        (listed,) = (await client.get("/v1/sessions")).json()["items"]
        assert listed == (await client.get(f"/v1/sessions/{session}")).json()
        assert listed["counts"] == {
            "discovered": 2, "pinned": 1, "deferred": 1, "searches": 1, "calls": 0, "failed_calls": 0,
        }  # fmt: skip
        assert (listed["catalog"], listed["toolset"], listed["deny"]) == ("default", None, ["convert_time"])
        assert listed["budget"] == {"tools": 7, "tokens": None}
        active = (await client.get(f"/v1/sessions/{session}/active")).json()["items"]
        assert [(tool["name"], tool["is_pinned"]) for tool in active] == [("pay_bill", True), ("send_mail", False)]
        deferred = (await client.get(f"/v1/sessions/{session}/deferred")).json()
        assert deferred["items"] == [
            {"name": "list_events", "summary": "List the events of a calendar on a day.", "server": ""}
        ]


async def test_lists_go_on_where_the_page_before_has_ended(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        expected = sorted([await opened(client) for _ in range(3)])
        first = (await client.get("/v1/sessions?limit=2")).json()
        second = (await client.get("/v1/sessions", params={"limit": 2, "after": first["next"]})).json()
        assert [item["id"] for item in (*first["items"], *second["items"])] == expected
        assert second["next"] is None
        page = (await client.get(f"/v1/sessions/{expected[0]}/deferred?limit=3")).json()
        rest = (await client.get(f"/v1/sessions/{expected[0]}/deferred?after={page['next']}")).json()
        tools = [tool["name"] for tool in (*page["items"], *rest["items"])]
        assert tools == ["convert_time", "list_events", "pay_bill", "send_mail"]


async def test_the_end_of_a_turn_evicts_what_is_over_the_sessions_own_budget(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client, budget={"tools": 2})
        await do(client, session, "expand", "send_mail", "pay_bill", "list_events")
        assert (await do(client, session, "end-turn"))["names"] == []  # this turn has found them
        assert (await do(client, session, "end-turn"))["names"] == ["send_mail", "pay_bill"]
        assert (await do(client, session, "begin-turn"))["names"] == []


async def test_a_turn_that_begins_with_the_users_words_shows_what_they_ask_for(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        turn = {"said": "Send an email message.", "format": "anthropic", "model": "claude-opus-5-5"}
        begun = (await client.post(f"/v1/sessions/{session}/begin-turn", json=turn)).json()
        (message,) = begun["messages"]
        assert "send_mail" in str(message)
        request = await client.get(f"/v1/sessions/{session}/tools?format=anthropic&model=claude-opus-5-5")
        assert [entry["name"] for entry in request.json()["tools"]] == [SEARCH]
        counted = (await client.get(f"/v1/sessions/{session}/savings")).json()
        assert (counted["anticipated"], counted["anticipated_calls"]) == (1, 0)


async def test_a_compacted_conversation_begins_a_new_list(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        await do(client, session, "expand", "send_mail")
        assert await names(client, session) == [SEARCH, "send_mail"]
        await do(client, session, "evict", "send_mail")
        assert await names(client, session) == [SEARCH, "send_mail"]  # its provider may have it cached
        assert (await client.post(f"/v1/sessions/{session}/compacted")).status_code == 204
        assert await names(client, session) == [SEARCH]


async def test_a_key_sees_in_a_session_only_what_both_reach(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        narrow = kit.client(kit.key("default", "search", deny=["pay_bill"]))
        session = await opened(narrow, deny=["convert_time"])
        assert (await do(client, session, "pin", "pay_bill"))["names"] == ["pay_bill"]
        assert await names(client, session) == [SEARCH, "pay_bill"]
        assert await names(narrow, session) == [SEARCH]
        for act in ("expand", "pin", "unpin", "evict"):
            assert (await do(narrow, session, act, "pay_bill", "convert_time"))["not_found"] == [
                "pay_bill", "convert_time",
            ]  # fmt: skip
        assert [
            tool["name"] for tool in (await narrow.get(f"/v1/sessions/{session}/deferred")).json()["items"]
        ] == ["list_events", "send_mail"]  # fmt: skip


async def test_sessions_belong_to_the_key_that_has_opened_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        await ready(kit)
        owner = kit.client(kit.key("default", "search", "call"))
        other = kit.client(kit.key("default", "search", "call"))
        narrow = kit.client(kit.key("default", "search", "call", "admin", deny=["pay_bill"]))
        admin = kit.client(kit.key("default", "admin"))
        session = await opened(owner)
        theirs = await opened(other)
        path = f"/v1/sessions/{session}"
        asked: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "", {}),
            ("DELETE", "", {}),
            ("GET", "/tools", {}),
            ("GET", "/savings", {}),
            ("POST", "/evict", {"names": ["send_mail"]}),
            ("POST", "/end-turn", {}),
            ("POST", "/search", {"queries": ["mail"]}),
            ("POST", "/calls", {"name": "send_mail", "arguments": {}}),
            ("POST", "/mcp", {}),
        ]
        refused = [
            await client.request(method, f"{path}{act}", json=body)
            for client in (other, narrow)
            for method, act, body in asked
        ]
        listed = [
            [each["id"] for each in (await client.get("/v1/sessions")).json()["items"]]
            for client in (owner, other, narrow, admin)
        ]
        assert codes(refused) == [(404, "unknown_session")] * 18
        assert listed == [[session], [theirs], [], sorted([session, theirs])]
        assert (await admin.delete(f"/v1/sessions/{theirs}")).status_code == 204
        assert (await owner.get(path)).status_code == 200


async def test_a_list_of_ones_own_sessions_is_whole_among_those_of_others(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sessions_module, "_READ_AT_ONCE", 2)
    async with serving(tmp_path) as kit:
        await ready(kit)
        owner, other = (kit.client(kit.key("default", "search")) for _ in range(2))
        own = sorted([await opened(client) for client in (owner, other) * 6][::2])
        first = (await owner.get("/v1/sessions?limit=4")).json()
        rest = (await owner.get("/v1/sessions", params={"limit": 4, "after": first["next"]})).json()

    assert [each["id"] for each in (*first["items"], *rest["items"])] == own
    assert rest["next"] is None


async def test_an_exchanged_key_keeps_its_sessions_and_the_calls_that_it_was_handed(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        admin = await ready(kit)
        key = (await admin.post("/v1/keys", json={"name": "agent"})).json()
        session = await opened(kit.client(key["key"]))
        path = f"/v1/sessions/{session}"
        call: dict[str, Any] = {"name": "send_mail", "arguments": {}}
        handed = (await kit.client(key["key"]).post(f"{path}/calls", json=call)).json()
        for _ in range(2):
            key = (await admin.post(f"/v1/keys/{key['id']}/rotate", json={"overlap_s": 60})).json()
            assert (await kit.client(key["key"]).get(path)).status_code == 200
        other = kit.client(kit.key("default", "search", "call"))
        report = f"/v1/calls/{handed['id']}/result"
        assert codes([await other.post(report, json={})]) == [(404, "not_found")]
        assert (await kit.client(key["key"]).post(report, json={})).status_code == 204


async def test_unknown_expired_and_foreign_sessions_are_answered_with_the_same_bytes(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        session = await opened(client, ttl_s=60)
        other = kit.client(kit.key("other"))
        foreign = await other.get(f"/v1/sessions/{session}")
        kit.clock.now_s = NOW_S + 59
        assert (await client.get(f"/v1/sessions/{session}")).status_code == 200
        kit.clock.now_s = NOW_S + 60
        expired = await client.get(f"/v1/sessions/{session}")
        assert codes([foreign, expired]) == [(404, "unknown_session")] * 2
        assert foreign.json()["detail"] == expired.json()["detail"]
        assert (await client.get("/v1/sessions")).json()["items"] == []


async def test_a_deleted_session_is_gone_with_what_it_has_discovered(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        session = await opened(client)
        assert (await client.delete(f"/v1/sessions/{session}")).status_code == 204
        again = await client.delete(f"/v1/sessions/{session}")
        assert codes([again]) == [(404, "unknown_session")]
        assert kit.service.storage.sessions("default").load(session) is None


async def test_sessions_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client, pins=["pay_bill"], budget={"tools": 2}, deny=["list_events"])
        await do(client, session, "expand", "send_mail")
        assert await names(client, session) == [SEARCH, "pay_bill", "send_mail"]
        token = kit.key("default")
    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = kit.client(token)
        assert await names(client, session) == [SEARCH, "pay_bill", "send_mail"]
        assert (await do(client, session, "expand", "list_events"))["not_found"] == ["list_events"]
        await do(client, session, "expand", "convert_time")
        assert (await do(client, session, "end-turn"))["names"] == ["send_mail"]  # over the budget of two


async def test_what_a_session_cannot_be_opened_with_is_refused_and_leaves_no_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        bodies: list[dict[str, Any]] = [
            {"catalog": "none"},
            {"toolset": "none"},
            {"catalog": "default", "toolset": "none"},
            {"allow": ["a b"]},
            {"pins": ["no_such"]},
            {"ttl_s": 0},
            {"budget": {"tools": 0}},
            {"exposure": "loud"},
        ]
        answers = [await client.post("/v1/sessions", json=body) for body in bodies]
        assert codes(answers) == [
            (404, "not_found"),
            (404, "not_found"),
            (422, "bad_request"),
            (400, "bad_setting"),
            (404, "unknown_tool"),
            (422, "bad_request"),
            (422, "bad_request"),
            (422, "bad_request"),
        ]
        assert (await client.get("/v1/sessions")).json()["items"] == []


async def test_a_session_needs_the_scope_to_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        session = await opened(client)
        caller = kit.client(kit.key("default", "call"))
        answers = [await caller.post("/v1/sessions", json={}), await caller.get(f"/v1/sessions/{session}/tools")]
        assert codes(answers) == [(403, "not_permitted")] * 2


def test_a_session_lasts_a_day_unless_the_settings_say_otherwise() -> None:
    assert ServiceSettings().serve.session_ttl_s == 86_400


async def test_a_session_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written leaves nothing behind that nobody would ever delete."""

    def broken(*_: object, **__: object) -> NoReturn:
        raise StorageError("the disk is full", Kept.RECORDS)

    async with serving(tmp_path) as kit:
        client = await ready(kit)
        kept = kit.service.storage.sessions("default")
        with monkeypatch.context() as patch:
            patch.setattr(RecordStore, "put", broken)
            assert codes([await client.post("/v1/sessions", json={})]) == [(500, "record_store_error")]
        assert kept.ids() == []

        session = await opened(client)
        with monkeypatch.context() as patch:
            patch.setattr(SqlSessionPersistence, "delete", broken)
            assert codes([await client.delete(f"/v1/sessions/{session}")]) == [(500, "record_store_error")]
        assert kept.ids() == [session]
        assert (await client.get(f"/v1/sessions/{session}")).status_code == 200


async def test_calls_that_were_run_are_answered_though_their_session_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the caller would repeat the reply, and run its calls once more."""

    def away(*_: object, **__: object) -> NoReturn:
        raise StorageError("the database is away", Kept.SESSIONS, retry_after_s=2)

    async with serving(tmp_path, **ALWAYS_SEARCH) as kit:
        client = await ready(kit)
        session = await opened(client)
        function = {"name": "send_mail", "arguments": "{}"}
        reply = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        monkeypatch.setattr(SqlSessionPersistence, "load", away)
        answer = await client.post(f"/v1/sessions/{session}/execute", json={"reply": reply})
        assert answer.status_code == 200
        assert [call["call_id"] for call in answer.json()["handed_back"]] == ["call_1"]
        search = await client.post(f"/v1/sessions/{session}/search", json={"queries": ["mail"]})
        assert (search.status_code, search.headers["retry-after"]) == (503, "2")
