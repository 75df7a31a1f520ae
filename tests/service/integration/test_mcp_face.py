"""Sessions by MCP, as the official client of both eras uses them, beside the same sessions over HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost

from tests.kit.gateway import ERAS, names, text
from tests.kit.mcp_sessions import OWN, Served, mcp_service
from tests.kit.service import NOW_S
from toolsearch.access.scopes import Scope
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.mcp_face import endpoint
from toolsearch.tools.naming import TOOL_NAME

TOOLS = [
    {"name": "send_mail", "description": "Send an email message."},
    {"name": "list_events", "description": "List the events of a calendar on a day."},
    {"name": "pay_bill", "description": "Pay a bill with money."},
]
ACME = CorpusRef("acme", "catalog", "default")
RPC = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with mcp_service(tmp_path, TOOLS) as running:
        yield running


# One session, two faces


@eras
@pytest.mark.parametrize("in_url", [True, False], ids=["token in the URL", "key as bearer"])
async def test_what_is_found_by_mcp_is_there_by_http(served: Served, era: str, in_url: bool) -> None:
    session = await served.session(url_token=in_url)
    async with served.mcp(session["mcp_url"], era, None if in_url else "") as client:
        assert (await names(client))[0] == TOOL_NAME
        await client.call_tool(TOOL_NAME, {"query": "select:pay_bill"})

    assert await served.discovered(session["id"]) == ["pay_bill"]


async def test_what_is_found_by_http_is_listed_by_mcp_and_the_client_is_told(served: Served) -> None:
    session = await served.session(exposure="append")
    told = asyncio.Event()

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async with served.mcp(session["mcp_url"], "legacy", message_handler=heard) as client, served.http() as http:
        assert await names(client) == OWN
        await http.post(f"/v1/sessions/{session['id']}/expand", json={"names": ["list_events"]})
        async with asyncio.timeout(20):
            await told.wait()
        assert await names(client) == [*OWN, "list_events"]


@eras
async def test_a_tool_that_lives_with_the_caller_is_answered_as_not_callable_here(served: Served, era: str) -> None:
    session = await served.session()
    async with served.mcp(session["mcp_url"], era) as client:
        result = await client.call_tool("callToolDestructive", {"name": "pay_bill", "arguments": {}})

    assert result.is_error
    assert (result.meta or {})["toolsearch/error"] == "not_callable_here"


@eras
async def test_the_reach_of_the_session_and_that_of_the_key_hold(served: Served, era: str) -> None:
    narrow = served.kit.key("acme", "search", "call", allow=["send_mail", "list_events"])
    session = await served.session(narrow, allow=["pay_bill", "send_mail"], pins=["send_mail"])
    async with served.http() as admin:
        await admin.post(f"/v1/sessions/{session['id']}/pin", json={"names": ["pay_bill"]})
    async with served.mcp(session["mcp_url"], era, narrow) as client:
        assert await names(client) == [*OWN, "send_mail"]
        found = await client.call_tool(TOOL_NAME, {"query": "select:pay_bill,list_events,send_mail"})
        codes = [
            ((await client.call_tool("callToolDestructive", {"name": each, "arguments": {}})).meta or {})[
                "toolsearch/error"
            ]
            for each in ("pay_bill", "list_events", "send_mail")
        ]

    assert codes == ["unknown_tool", "unknown_tool", "not_callable_here"]
    assert [each["name"] for each in (found.structured_content or {})["tools"]] == ["send_mail"]


# Who may


async def asked(served: Served, path: str, token: str | None, **more: Any) -> httpx2.Response:
    headers = {**RPC, **({"authorization": f"Bearer {token}"} if token else {})}
    async with httpx2.AsyncClient(base_url=served.url) as client:
        return await client.post(path, headers={**headers, **more}, json=INITIALIZE)


async def test_without_a_credential_nothing_is_answered(served: Served) -> None:
    session = await served.session(url_token=True)
    path, token = f"/v1/sessions/{session['id']}/mcp", session["mcp_url"].rpartition("/")[2]
    answers = [
        await asked(served, path, None),
        await asked(served, path, "ts_no_such_key"),
        await asked(served, f"{path}/{token[:-4]}AAAA", None),
        await asked(served, f"{path}/{token[:-4]}AAAA", served.key),
    ]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [(401, "not_authenticated")] * 4
    assert all(each.headers["www-authenticate"].startswith("Bearer") for each in answers)


async def test_unknown_and_foreign_sessions_answer_with_the_same_bytes(served: Served) -> None:
    session = (await served.session())["id"]
    other, nothing = served.kit.key("others"), "ses_" + "0" * 24
    foreign = await asked(served, f"/v1/sessions/{session}/mcp", other)
    unknown = await asked(served, f"/v1/sessions/{nothing}/mcp", other)

    assert foreign.status_code == unknown.status_code == 404
    assert foreign.content.replace(session.encode(), b"") == unknown.content.replace(nothing.encode(), b"")
    assert sorted(foreign.headers) == sorted(unknown.headers)


async def test_a_token_is_good_for_its_own_session_alone(served: Served) -> None:
    mine, yours = await served.session(url_token=True), await served.session()
    token = mine["mcp_url"].rpartition("/")[2]
    answer = await asked(served, f"/v1/sessions/{yours['id']}/mcp/{token}", None)

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_session")


async def test_a_token_holds_no_longer_than_its_session_or_its_key(served: Served) -> None:
    session = await served.session(url_token=True, ttl_s=60)
    path = session["mcp_url"].removeprefix(served.url)
    assert (await asked(served, path, None)).status_code == 200
    served.kit.clock.now_s = NOW_S + 60
    assert (await asked(served, path, None)).status_code == 401

    again = (await served.session(url_token=True))["mcp_url"].removeprefix(served.url)
    key = served.kit.service.storage.keys.page("acme", limit=1)[0]
    served.kit.service.storage.keys.revoke("acme", key.id, at_s=NOW_S)
    assert (await asked(served, again, None)).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "may_search", "may_call"),
    [(("search",), True, False), (("call",), False, True), (("admin",), True, True)],
)
async def test_searches_and_calls_need_their_scopes(
    served: Served,
    scopes: tuple[Scope, ...],
    may_search: bool,
    may_call: bool,
) -> None:
    key = served.kit.key("acme", *scopes)
    session = await served.kit.session_of(key)
    async with served.mcp(f"{served.url}/v1/sessions/{session}/mcp", token=key) as client:
        codes = [
            (result.meta or {}).get("toolsearch/error")
            for result in (
                await client.call_tool(TOOL_NAME, {"query": "pay"}),
                await client.call_tool("callToolDestructive", {"name": "pay_bill", "arguments": {}}),
            )
        ]
        with pytest.raises(MCPError, match="Resource not found" if may_call else "lacks the scope 'call'"):
            await client.read_resource("file:///none")

    refused = "not_permitted"
    assert codes == [None if may_search else refused, "not_callable_here" if may_call else refused]


async def test_a_key_without_the_scopes_of_an_agent_cannot_tell_which_sessions_there_are(served: Served) -> None:
    session = await served.session()
    key = served.kit.key("acme", "read-catalog")
    answers = [await asked(served, f"/v1/sessions/{each}/mcp", key) for each in (session["id"], "ses_none")]

    assert [each.status_code for each in answers] == [403, 403]
    assert answers[0].content == answers[1].content


async def test_other_hosts_and_foreign_pages_are_refused(served: Served) -> None:
    path = f"/v1/sessions/{(await served.session())['id']}/mcp"

    assert (await asked(served, path, served.key, host="evil.example")).status_code == 421
    assert (await asked(served, path, served.key, origin="https://evil.example")).status_code == 403


async def test_a_connection_is_only_good_for_the_session_and_the_key_that_began_it(served: Served) -> None:
    mine, yours = (await served.session())["id"], (await served.session())["id"]
    begun = await asked(served, f"/v1/sessions/{mine}/mcp", served.key)
    connection = {"mcp-session-id": begun.headers["mcp-session-id"], **RPC}
    statuses: list[int] = []
    for session, token in ((yours, served.key), (mine, served.kit.key("acme")), (mine, served.key)):
        async with served.http(token) as client:
            answer = await client.post(f"/v1/sessions/{session}/mcp", headers=connection, json=LIST)
            statuses.append(answer.status_code)

    assert statuses == [404, 404, 200]


async def test_the_token_of_an_address_is_in_no_log(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="uvicorn.access")  # other servers of this process may have quietened it
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
    session = await served.session(url_token=True)
    caplog.clear()
    await asked(served, session["mcp_url"].removeprefix(served.url), None)

    lines = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert any(f"/v1/sessions/{session['id']}/mcp HTTP" in line for line in lines)
    assert not any(session["mcp_url"].rpartition("/")[2] in line for line in lines)


# How it ends


async def test_when_a_session_is_deleted_its_connections_and_streams_end(served: Served) -> None:
    session, other = await served.session(), await served.session()
    path = f"/v1/sessions/{session['id']}/mcp"
    async with served.http() as http:
        ids = [
            (await http.post(f"/v1/sessions/{each['id']}/mcp", headers=RPC, json=INITIALIZE)).headers["mcp-session-id"]
            for each in (session, other)
        ]
        async with http.stream("GET", path, headers={**RPC, "mcp-session-id": ids[0]}) as stream:
            assert stream.status_code == 200
            assert (await http.delete(f"/v1/sessions/{session['id']}")).status_code == 204
            async with asyncio.timeout(20):
                assert [line async for line in stream.aiter_lines() if line.startswith("data")] == []

        gone = await http.post(path, headers={**RPC, "mcp-session-id": ids[0]}, json=LIST)
        still = await http.post(f"/v1/sessions/{other['id']}/mcp", headers={**RPC, "mcp-session-id": ids[1]}, json=LIST)
    assert (gone.status_code, still.status_code) == (404, 200)


@pytest.mark.parametrize("what", ["session", "key", "idle", "catalog"])
async def test_a_client_that_only_listens_is_disconnected_when_nothing_holds_any_more(
    served: Served, what: str
) -> None:
    """Its session or its key has expired, its catalog is gone, or it has asked nothing for too long."""
    key = served.kit.key("acme", "search", expires_s=NOW_S + (600 if what == "key" else 7_200))
    session = await served.session(key, ttl_s=600 if what == "session" else 7_200)
    path = f"/v1/sessions/{session['id']}/mcp"
    async with served.http(key) as http:
        connection = (await http.post(path, headers=RPC, json=INITIALIZE)).headers["mcp-session-id"]
        async with http.stream("GET", path, headers={**RPC, "mcp-session-id": connection}) as stream:
            await served.kit.service.mcp.look()
            assert served.kit.service.mcp.served == [ACME]
            if what == "catalog":
                served.kit.service.storage.records.delete("acme", "catalog", "default")
                await served.kit.service.corpora.drop(ACME)
            elif what == "idle":
                served.clock.now_s += 1_800
            else:
                served.kit.clock.now_s = NOW_S + 600
            await served.kit.service.mcp.look()
            async with asyncio.timeout(20):
                assert [line async for line in stream.aiter_lines() if line.startswith("data")] == []


@eras
async def test_a_corpus_is_held_while_a_client_is_connected_and_let_go_afterwards(served: Served, era: str) -> None:
    mcp, corpora = served.kit.service.mcp, served.kit.service.corpora
    session = await served.session()
    async with served.mcp(session["mcp_url"], era) as client:
        await names(client)
        assert mcp.served == [ACME]
        held = corpora._places[ACME].users
        assert held >= 1
    served.clock.now_s += 3_600
    await mcp.look()

    assert mcp.served == []
    assert corpora._places[ACME].users == 0


async def test_clients_of_one_catalog_share_its_endpoint(served: Served) -> None:
    first, second = await served.session(), await served.session()
    async with served.mcp(first["mcp_url"], "legacy") as one, served.mcp(second["mcp_url"]) as two:
        await one.call_tool(TOOL_NAME, {"query": "select:pay_bill"})
        await two.call_tool(TOOL_NAME, {"query": "select:send_mail"})
        assert served.kit.service.mcp.served == [ACME]

    assert await served.discovered(first["id"]) == ["pay_bill"]
    assert await served.discovered(second["id"]) == ["send_mail"]


async def test_too_many_connections_are_turned_away_with_when_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(endpoint, "SESSION_IDLE_S", 30.0)
    async with mcp_service(tmp_path, TOOLS) as served:
        path = f"/v1/sessions/{(await served.session())['id']}/mcp"
        assert (await asked(served, path, served.key)).status_code == 200
        refused = await asked(served, path, served.key)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")


async def test_answers_of_the_search_read_as_they_do_elsewhere(served: Served) -> None:
    session = await served.session()
    async with served.mcp(session["mcp_url"], "legacy") as client:
        found = await client.call_tool(TOOL_NAME, {"query": "pay a bill"})

    assert "pay_bill" in text(found)


async def test_a_client_of_2026_that_only_listens_is_disconnected_when_it_has_asked_nothing_for_too_long(
    served: Served,
) -> None:
    session = await served.session()
    async with served.mcp(session["mcp_url"]) as client, client.listen(tools_list_changed=True) as stream:
        await served.kit.service.mcp.look()
        served.clock.now_s += 1_800
        await served.kit.service.mcp.look()
        async with asyncio.timeout(20):
            with pytest.raises(SubscriptionLost):
                await anext(aiter(stream))


async def test_clients_of_2026_are_told_when_the_pins_of_their_own_session_change(served: Served) -> None:
    mine, yours = await served.session(), await served.session()
    async with (
        served.mcp(mine["mcp_url"]) as first,
        served.mcp(yours["mcp_url"]) as second,
        first.listen(tools_list_changed=True) as mine_changed,
        second.listen(tools_list_changed=True) as yours_changed,
        served.http() as http,
    ):
        await http.post(f"/v1/sessions/{mine['id']}/pin", json={"names": ["pay_bill"]})
        async with asyncio.timeout(20):
            await anext(aiter(mine_changed))
        assert await names(first) == [*OWN, "pay_bill"]

        await http.post(f"/v1/sessions/{yours['id']}/pin", json={"names": ["send_mail"]})
        async with asyncio.timeout(20):
            await anext(aiter(yours_changed))
        assert await names(second) == [*OWN, "send_mail"]
