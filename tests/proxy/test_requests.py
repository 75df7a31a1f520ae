"""What goes upstream for a request: the list, the conversation, and what keeps its bytes."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import httpx
import httpx2
import pytest

from tests.kit.proxy_clients import CLIENTS
from toolsearch.catalog.catalog import Catalog
from toolsearch.proxy.app import WIRES, ProxyApp
from toolsearch.proxy.body import Body
from toolsearch.proxy.listing import Target
from toolsearch.proxy.request import Request
from toolsearch.proxy.tools import ToolLists
from toolsearch.proxy.unchanged import PassUnchangedError, require_changeable
from toolsearch.proxy.upstream import Upstream
from toolsearch.settings import Settings
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.wire.capabilities import Cloud
from toolsearch.wire.native_search import found_names

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
ENTRIES = {"messages": "messages", "chat": "messages", "responses": "input"}
EVERY_API = pytest.mark.parametrize("api", PATHS)
SETTINGS = Settings.model_validate({"index": {"encoder": None, "strategy": "keyword"}})
ALWAYS = Settings.model_validate({**SETTINGS.model_dump(exclude_unset=True), "pass_through": {"max_tools": 0}})


async def planned(
    api: str,
    content: bytes,
    *,
    tools: Catalog | None = None,
    keep: tuple[str, ...] = (),
    cloud: Cloud = "other",
    settings: Settings = SETTINGS,
) -> Request:
    wire_format, wire = WIRES[PATHS[api]]
    body = require_changeable(
        Body.read(content, lists=(wire.ENTRIES,)), wire.CONTINUATION, None, has_operator=bool(tools)
    )
    tool_list = await ToolLists(settings, tools, keep).get(body, wire_format)
    return Request(Target(wire_format, wire, cloud), body, tool_list)


def shop(api: str, count: int = 20) -> list[dict[str, Any]]:
    make = CLIENTS[api].tool
    return [make(f"shop__thing_{number:03}", f"Does the thing number {number} in the shop.") for number in range(count)]


def body_of(api: str, tools: list[dict[str, Any]], said: str = "Hello", **more: Any) -> bytes:
    return json.dumps(
        {"model": "m", ENTRIES[api]: [{"role": "user", "content": said}], "tools": tools, **more}
    ).encode()


def names_in(content: bytes) -> list[str]:
    return [
        tool.get("name") or tool.get("function", {}).get("name") or tool["type"]
        for tool in json.loads(content)["tools"]
    ]


OURS = ["toolSearchTool", "callTool"]


@EVERY_API
async def test_the_list_has_the_providers_tools_then_the_clients_own_by_name_then_ours(api: str) -> None:
    native = (
        {"type": "web_search_20250305", "name": "web_search"}
        if api == "messages"
        else {"type": "custom", "name": "apply_patch", "custom": {"name": "apply_patch"}}
    )
    own = [CLIENTS[api].tool(name, "Own.") for name in ("Write", "Bash")]
    request = await planned(api, body_of(api, [own[0], *shop(api), native, own[1]]))

    assert names_in(request.content()) == [native["name"], "Bash", "Write", *OURS]
    assert len(request.listing.held_back) == 20


@EVERY_API
async def test_everything_but_the_list_keeps_its_bytes(api: str) -> None:
    tools = json.dumps(shop(api))
    front, back = (
        '{ "a" : 1.50,\n "tools" : ',
        f',"{ENTRIES[api]}":[ {{"role":"user", "content" : "\\u0041"}} ] , "stream":false }}\n',
    )
    request = await planned(api, f"{front}{tools}{back}".encode())
    sent = request.content().decode()

    assert sent.startswith(front)
    assert sent.endswith(back)


@EVERY_API
async def test_a_kept_tool_has_the_bytes_that_the_client_sent(api: str) -> None:
    """Even if its schema is one that a provider refuses: it is the client's."""
    odd = json.dumps(CLIENTS[api].tool("Odd", "Odd \u00fc.", strict=True)).replace('": ', '" : ')
    tools = json.dumps(shop(api))
    content = body_of(api, []).replace(b'"tools": []', f'"tools": {tools[:-1]}, {odd}]'.encode())
    request = await planned(api, content)

    assert odd.encode() in request.content()


@EVERY_API
async def test_the_schemas_of_the_operators_tools_are_made_sendable(api: str) -> None:
    schema = {"type": "object", "properties": {"Start<": {"type": "string"}}}
    odd = Tool(ToolDefinition("odd", "Does something odd.", schema))
    request = await planned(api, body_of(api, shop(api, 2)), tools=Catalog([odd]))

    assert names_in(request.content()) == ["shop__thing_000", "shop__thing_001", "odd"]  # few tools are all listed
    assert b'"Start<"' not in request.content()


@EVERY_API
async def test_the_clients_tool_wins_over_an_operators_of_the_same_name(api: str) -> None:
    operator = Catalog([Tool(ToolDefinition("shop__thing_000", "Another one."))])
    request = await planned(api, body_of(api, shop(api)), tools=operator)

    assert set(request.held) == set(OURS)
    assert b"Another one" not in request.content()


@EVERY_API
async def test_tools_are_kept_by_patterns_and_without_prefixes_by_the_system_text(api: str) -> None:
    make = CLIENTS[api].tool
    tools = [make(f"thing_{number:03}", f"Does the thing number {number}.") for number in range(40)]
    told = {"system": "Use thing_007 (not thing_0080)."} if api == "messages" else {}
    if api == "responses":
        told = {"instructions": "Use thing_007 (not thing_0080)."}
    content = body_of(api, tools, **told)
    if api == "chat":
        content = content.replace(
            b'[{"role": "user"', b'[{"role":"developer","content":"Use thing_007 (not thing_0080)."},{"role": "user"'
        )
    request = await planned(api, content, keep=("*_01?",))

    assert names_in(request.content()) == [f"thing_{number:03}" for number in (7, *range(10, 20))] + OURS


@EVERY_API
async def test_words_of_the_system_text_name_tools_wherever_they_stand_in_it(api: str) -> None:
    """At the beginning of a line, in capitals, but not after the model's first answer, when the list is known."""
    make = CLIENTS[api].tool
    tools = [make(name, "Does it.") for name in ("webfetch", "glob", "late", *(f"thing_{n}" for n in range(20)))]
    told = {"role": "system", "content": [{"type": "input_text", "text": "Use these:\nglob\nand the WebFetch tool."}]}
    later = [{"role": "assistant", "content": "Yes"}, {"role": "system", "content": "Use late."}]
    body = json.loads(body_of(api, tools)) | {ENTRIES[api]: [told, {"role": "user", "content": "Hi"}, *later]}

    assert names_in((await planned(api, json.dumps(body).encode())).content()) == ["glob", "webfetch", *OURS]


@EVERY_API
async def test_notes_of_programs_are_not_words_of_the_user(api: str) -> None:
    tools = [*shop(api), CLIENTS[api].tool("mail__send_mail", "Send an e-mail to somebody.")]
    note = "<system-reminder>\nNever mind.\n</system-reminder>"
    where = "<environment_context>Send an e-mail to somebody</environment_context>"

    asked = await planned(api, body_of(api, tools, f"{note}{where}Send an e-mail to somebody{note}"))
    noted = await planned(api, body_of(api, tools, f"{note}{where}Hello"))

    assert asked.revealed == ["mail__send_mail"]
    assert noted.revealed == []


@EVERY_API
async def test_the_order_of_a_clients_tools_does_not_matter(api: str) -> None:
    tools = [*shop(api), CLIENTS[api].tool("Write", "Own."), CLIENTS[api].tool("Bash", "Own.")]
    one, other = await planned(api, body_of(api, tools)), await planned(api, body_of(api, tools[::-1]))

    assert one.content() == other.content()


NAMED = {"type": "function", "function": {"name": "shop__thing_003"}}
CHOICES: dict[str, list[Any]] = {
    "messages": [{"type": "tool", "name": "shop__thing_003"}, {"type": "any", "disable_parallel_tool_use": True}],
    "chat": [
        NAMED,
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}},
        "required",
    ],
    "responses": [
        {"type": "function", "name": "shop__thing_003"},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "shop__thing_003"}]},
        "none",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("api", "choice"), [(api, choice) for api, choices in CHOICES.items() for choice in choices])
async def test_a_tool_choice_is_never_widened_and_its_tools_are_listed(api: str, choice: Any) -> None:
    written = json.dumps(choice).replace(" ", "  ")
    content = body_of(api, shop(api), tool_choice="CHOICE").replace(b'"CHOICE"', written.encode())
    sent = (await planned(api, content)).content()

    assert f'"tool_choice": {written}'.encode() in sent
    assert ("shop__thing_003" in names_in(sent)) == ("shop__thing_003" in written)


async def test_the_cache_mark_of_the_last_tool_moves_to_the_end_of_the_list() -> None:
    tools = shop("messages")
    tools[-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    sent = json.loads((await planned("messages", body_of("messages", tools))).content())["tools"]
    own = CLIENTS["messages"].tool("Read", "Reads.", cache_control={"type": "ephemeral"})
    kept = json.loads((await planned("messages", body_of("messages", [*shop("messages"), own]))).content())["tools"]

    assert [tool.get("cache_control") for tool in sent] == [None, {"type": "ephemeral", "ttl": "1h"}]
    assert [tool.get("cache_control") for tool in kept] == [{"type": "ephemeral"}, None, None]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_openai_is_never_sent_more_than_128_tools(api: str) -> None:
    request = await planned(api, body_of(api, shop(api, 300)), keep=("*",), cloud="")

    assert len(names_in(request.content())) <= 128
    assert names_in(request.content())[-1] in OURS


@EVERY_API
@pytest.mark.parametrize("cloud", ["other", ""])
async def test_the_next_request_continues_what_the_model_was_sent(api: str, cloud: Cloud) -> None:
    """Also if each request meets another proxy, which knows nothing of the others."""
    said = {"content": "Do the thing number 7 in the shop"}
    history: list[Any] = [{"role": "user", **said}]
    sent: list[Any] = []
    for number in range(4):
        model = "claude-sonnet-5-5" if api == "messages" else "gpt-5.1"
        body = json.loads(body_of(api, shop(api))) | {"model": model, ENTRIES[api]: history}
        content = json.dumps(body).encode()
        made = [(await planned(api, content, cloud=cloud)).content() for _ in range(2)]
        assert made[0] == made[1]
        sent.append(json.loads(made[0]))
        history = [*history, {"role": "assistant", "content": f"Yes {number}"}, {"role": "user", **said}]

    assert all(each["tools"] == sent[0]["tools"] for each in sent)
    key = ENTRIES[api]
    assert all(later[key][: len(earlier[key])] == earlier[key] for earlier, later in pairwise(sent))


async def test_an_answer_that_each_later_request_holds_is_written_once() -> None:
    wire_format, wire = WIRES[PATHS["messages"]]
    lists, target = ToolLists(SETTINGS), Target(wire_format, wire, "other")
    read = Body.read(body_of("messages", shop("messages")), lists=(wire.ENTRIES,))
    body = require_changeable(read, wire.CONTINUATION, None, has_operator=False)
    found = ["shop__thing_007", "not there"]
    said = [
        Request(target, body, await lists.get(body, wire_format)).history.answer_to_search(found).text for _ in range(3)
    ]

    tools = await lists.get(body, wire_format)
    assert tools.remembered.answer.cache_info()[:2] == (2, 1)
    assert "Does the thing number 7 in the shop." in said[0]
    assert len({*said}) == 1


OFF: list[tuple[str, dict[str, Any]]] = [
    ("too few", {"tools": []}),
    ("no tools", {"tools": None}),
    ("several choices", {"n": 2}),
]
NO_CONVERSATION: list[tuple[str, dict[str, Any]]] = [
    ("background", {"background": True}),
    ("previous_response_id", {"previous_response_id": "r"}),
    ("conversation", {"conversation": "c"}),
]


@EVERY_API
@pytest.mark.parametrize(("reason", "change"), OFF[1:], ids=[reason for reason, _ in OFF[1:]])
async def test_a_request_that_cannot_be_continued_is_left_alone(api: str, reason: str, change: dict[str, Any]) -> None:
    content = json.dumps(json.loads(body_of(api, shop(api))) | change).encode()

    with pytest.raises(PassUnchangedError, match=reason):
        await planned(api, content)


@pytest.mark.parametrize(("reason", "change"), NO_CONVERSATION, ids=[reason for reason, _ in NO_CONVERSATION])
async def test_a_request_without_its_conversation_is_left_alone(reason: str, change: dict[str, Any]) -> None:
    content = json.dumps(json.loads(body_of("responses", shop("responses"))) | change).encode()

    with pytest.raises(PassUnchangedError, match=reason):
        await planned("responses", content)


@EVERY_API
async def test_lists_that_the_proxy_cannot_take_over_are_left_alone(api: str) -> None:
    make, things = CLIENTS[api].tool, shop(api)
    lists = {
        "too few": things[:3],
        "two tools have one name": [*things, things[0]],
        "its own tool search": [*things, make("toolSearchTool", "Mine.")],
        "has its own": [*things, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}],
        "own tool search, the": [*things[:3], {**make("deferred", "Deferred."), "defer_loading": True}],
    }
    for reason, tools in lists.items():
        with pytest.raises(PassUnchangedError, match=reason):
            await planned(api, body_of(api, tools))
    with pytest.raises(PassUnchangedError, match="a key twice"):
        await planned(
            api, body_of(api, things).replace(b'"name": "shop__thing_000"', b'"name": "a", "name": "shop__thing_000"')
        )


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_a_message_adds_a_tool_as_the_client_has_written_it(api: str) -> None:
    own = CLIENTS[api].tool("mail__send_mail", "Send an e-mail to somebody.", strict=True, cache_control={"type": "x"})
    model = "claude-sonnet-5-5" if api == "messages" else "gpt-5.1"
    content = body_of(api, [*shop(api), own], "Send an e-mail to somebody", model=model)
    [_, change] = json.loads((await planned(api, content, cloud="")).content())[ENTRIES[api]]
    added = change["content"][0]["tool"]["definition"] if api == "messages" else change["tools"][0]

    assert added == {key: value for key, value in own.items() if key != "cache_control"}


async def test_a_message_never_adds_a_tool_as_somebody_else_has_written_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolsearch.proxy.request.render_definition", lambda *_: {"name": "another"})
    own = CLIENTS["messages"].tool("mail__send_mail", "Send an e-mail to somebody.")
    content = body_of("messages", [*shop("messages"), own], own["description"], model="claude-sonnet-5-5")
    request = await planned("messages", content, cloud="")

    with pytest.raises(LookupError, match="no definition of 'mail__send_mail'"):
        request.content()


@EVERY_API
async def test_the_client_gets_the_names_that_its_own_schema_has(api: str) -> None:
    """The model was told of them under names that every provider takes."""
    own = CLIENTS[api].tool("time__list", "Lists times.")
    schema = {"type": "object", "properties": {"Start<": {"type": "string"}}}
    (own["function"] if api == "chat" else own)["input_schema" if api == "messages" else "parameters"] = schema
    request = await planned(api, body_of(api, [*shop(api), own]))
    found = await _searched(request, "select:time__list")
    told = request.history.answer_to_search(found_names(found)).text
    call = request.to_client(ToolCall("c", "callTool", '{"name":"time__list","arguments":{"Start_lt":"now"}}'))

    assert '"Start_lt"' in told
    assert call is not None
    assert call.parsed_arguments == {"Start<": "now"}


async def _searched(request: Request, query: str) -> ToolResult:
    output = request.conversation.answer({"queries": [query]})
    return ToolResult("c", "toolSearchTool", output.content, output.structured)


@EVERY_API
async def test_the_arguments_of_a_call_reach_the_client_as_the_model_wrote_them(api: str) -> None:
    request = await planned(api, body_of(api, shop(api)))
    call = request.to_client(ToolCall("c", "callTool", '{"arguments": {"a" : 1.50}, "name":"shop__thing_003"}'))

    assert call == ToolCall("c", "shop__thing_003", '{"a" : 1.50}')
    assert request.to_client(ToolCall("c", "callTool", '{"name":"no_such_tool","arguments":{}}')) is None
    assert request.to_client(ToolCall("c", "callTool", '{"name":')) is None
    assert request.to_client(ToolCall("c", "toolSearchTool", '{"queries":["a"]}')) is None


DEEP: dict[str, Any] = {"type": "object"}
for _ in range(150):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
ODD = [{"type": ["object", "null"]}, {"type": "object", "description": "x" * 600_000}, {"maximum": float("inf")}, DEEP]


@EVERY_API
@pytest.mark.parametrize("schema", ODD, ids=["types", "long", "infinite", "deep"])
async def test_one_tool_that_cannot_be_searched_stays_listed_beside_the_others(
    api: str, schema: dict[str, Any]
) -> None:
    """Also one that is named as an operator's: the name stays the client's."""
    operator = Catalog([Tool(ToolDefinition(name, "Is odd.")) for name in ("odd", "more")])
    odd = CLIENTS[api].tool("odd", "Is odd.")
    (odd["function"] if api == "chat" else odd)["input_schema" if api == "messages" else "parameters"] = schema
    request = await planned(api, body_of(api, [*shop(api), odd]), tools=operator, settings=ALWAYS)

    assert json.dumps(odd).encode() in request.content()
    assert names_in(request.content()) == ["odd", *OURS]
    assert set(request.held) == {"more", *OURS}


@EVERY_API
async def test_a_list_of_very_many_tools_is_left_alone(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of them would take minutes. Tools in namespaces count, too."""
    with pytest.raises(PassUnchangedError, match="more than 5,000 tools"):
        await planned(api, body_of(api, [{}] * 20_001))

    monkeypatch.setattr("toolsearch.proxy.tools._MOST_TOOLS", 20)
    assert len((await planned(api, body_of(api, shop(api)))).listing.held_back) == 20
    namespace = {"type": "namespace", "name": "eyes", "tools": [CLIENTS[api].tool("look", "Looks.")]}
    for more in (CLIENTS[api].tool("Read", "Reads."), namespace):
        with pytest.raises(PassUnchangedError, match="more than 5,000 tools"):
            await planned(api, body_of(api, [*shop(api), more]))


async def test_one_list_is_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many new lists do not take all processors from the requests whose lists are known."""
    making, most = 0, 0
    make = ToolLists._make

    def counted(self: ToolLists, text: str, wire_format: str) -> Any:
        nonlocal making, most
        making += 1
        most = max(most, making)
        try:
            return make(self, text, wire_format)
        finally:
            making -= 1

    monkeypatch.setattr(ToolLists, "_make", counted)
    lists = ToolLists(SETTINGS)
    bodies = [Body.read(body_of("messages", shop("messages", count))) for count in range(20, 40)]
    await asyncio.gather(*(lists.get(body, "anthropic") for body in bodies if body is not None))

    assert most == 1


@EVERY_API
async def test_a_request_without_a_body_goes_on_without_one(api: str) -> None:
    asked: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers)
        return httpx2.Response(400, stream=httpx2.ByteStream(b"{}"))

    async def nothing() -> AsyncIterator[bytes]:
        for piece in ():
            yield piece

    app = ProxyApp(Upstream("http://api.test", transport=httpx2.MockTransport(answer)), SETTINGS, None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proxy.test") as http:
        await http.post(PATHS[api], content=nothing())

    assert [(each.get("transfer-encoding"), each["content-length"]) for each in asked] == [(None, "0")]
