"""Lists as Codex writes them: the tools of each server in a namespace, beside tools of its own."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from tests.kit.loopback import Call, LoopbackApi, Reply
from tests.kit.proxied import served_proxy
from tests.kit.proxy_clients import ResponsesClient
from tests.kit.strict.openai_responses import problems
from tests.proxy.test_requests import ALWAYS, body_of, names_in, planned
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.wire.capabilities import Cloud

Json = dict[str, Any]
OURS = ["toolSearchTool", "callTool"]
tool = ResponsesClient.tool
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": {"type": "text"}}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds.",
    "parameters": {"type": "object", "properties": {}},
}
MAIL = [tool("send_mail", "Send an e-mail to somebody."), tool("list_mails", "List the e-mails of a folder.")]


def namespace(name: str, *tools: Mapping[str, Any]) -> Json:
    return {"type": "namespace", "name": name, "description": f"Tools in {name}.", "tools": [*tools]}


def things(count: int = 20) -> list[Json]:
    return [tool(f"thing_{number:02}", f"Does the thing number {number} in the shop.") for number in range(count)]


def listed(*more: Json) -> list[Json]:
    agents = namespace("agents", tool("spawn_agent", "Start an agent."))
    return [
        tool("exec_command", "Runs a command."),
        PATCH,
        agents,
        namespace("mcp__mail", *MAIL),
        namespace("mcp__shop", *things()),
        *more,
    ]


def tools_in(body: Json) -> list[str]:
    """Names of tools, with those of their namespaces."""
    return [
        name
        for entry in body["tools"]
        for name in (
            [f"{entry['name']}.{each['name']}" for each in entry["tools"]]
            if entry["type"] == "namespace"
            else [entry.get("name", entry["type"])]
        )
    ]


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("more", [(), (SEARCH,)], ids=["", "beside its own search"])
def test_a_tool_in_a_namespace_is_found_and_run_by_the_client(
    api: LoopbackApi, is_streamed: bool, more: tuple[Json, ...]
) -> None:
    """The client is called by its two names, and its history becomes what the model has said."""
    call = {"name": "mcp__mail__send_mail", "arguments": {"text": "hi"}}
    replies = [
        Reply(calls=[Call("toolSearchTool", json.dumps({"queries": ["send an e-mail"]}))]),
        Reply("There.", calls=[Call("callTool", json.dumps(call, separators=(",", ":")))]),
        Reply("Sent."),
        Reply("You are welcome."),
    ]
    tools = listed(*more)
    api.is_strict = False
    api.script(*replies)
    with served_proxy(api.url) as url:
        client = ResponsesClient(url, is_streamed, model="gpt-5.5")
        first = client.ask("Please greet Bob", tools)
        [sent] = [item for item in client.history if item.get("type") == "function_call"]
        client.give("done", tools=tools)
        last = client.ask("Thanks", tools)

    assert first.calls == [("send_mail", {"text": "hi"})]
    assert (sent["namespace"], sent["name"]) == ("mcp__mail", "send_mail")
    assert last.text == "You are welcome."
    listing = ["apply_patch", *(["tool_search"] if more else []), "exec_command", "agents.spawn_agent", *OURS]
    assert [tools_in(body) for body in api.bodies] == [listing] * 4
    assert "mcp__mail__send_mail" in api.bodies[1]["input"][-1]["output"]
    [called] = [item for item in api.bodies[2]["input"] if item.get("name") == "callTool"]
    assert json.loads(called["arguments"]) == call
    assert "namespace" not in called
    assert [problems(body) for body in api.bodies] == [[]] * 4


def test_messages_add_tools_inside_their_namespaces(api: LoopbackApi) -> None:
    """As the client wrote them, and each namespace once."""
    replies = [
        Reply(
            calls=[
                Call("toolSearchTool", json.dumps({"queries": ["select:mcp__mail__send_mail,mcp__mail__list_mails"]}))
            ]
        ),
        Reply(calls=[Call("mcp__mail.send_mail", '{"text":"hi"}')]),
        Reply("Sent."),
    ]
    api.is_strict = False
    api.script(*replies)
    with served_proxy(api.url, cloud="") as url:
        client = ResponsesClient(url)
        said = client.ask("Please greet Bob", listed())
        client.give("done", tools=listed())

    assert "mcp__mail.send_mail, mcp__mail.list_mails" in api.bodies[1]["input"][-2]["output"]
    added = [item for item in api.bodies[2]["input"] if item.get("type") == "additional_tools"]
    assert said.calls == [("send_mail", {"text": "hi"})]
    assert [item["tools"] for item in added] == [[namespace("mcp__mail", *MAIL)]]
    [call] = [item for item in api.bodies[2]["input"] if item.get("name") == "send_mail"]
    assert call["namespace"] == "mcp__mail"
    assert [problems(body) for body in api.bodies] == [[]] * 3


@pytest.mark.parametrize("cloud", ["other", ""])
async def test_a_call_by_the_full_name_reaches_the_client_by_both(cloud: Cloud) -> None:
    """A model may call what it has read."""
    content = body_of("responses", listed(), model="gpt-5.5")
    request = await planned("responses", content, cloud=cloud)
    reply = request.target.wire.open_reply(request.held, request.to_client, request.history)
    said = {"type": "function_call", "call_id": "c", "name": "mcp__mail__send_mail", "arguments": '{"text" : "hi"}'}
    reply.add_whole({"status": "completed", "output": [said]})

    assert reply.body()["output"] == [
        {**said, "status": "completed", "name": "send_mail", "namespace": "mcp__mail"},
    ]


@pytest.mark.parametrize("cloud", ["other", ""])
async def test_a_namespace_keeps_its_bytes_unless_a_part_of_it_is_held_back(cloud: Cloud) -> None:
    mail = json.dumps(namespace("mcp__mail", *MAIL)).replace(": ", " : ")
    tools = json.dumps(listed()).replace(json.dumps(namespace("mcp__mail", *MAIL)), mail)
    content = body_of("responses", []).replace(b'"tools": []', f'"tools": {tools}'.encode())
    [sending, listing] = [json.dumps(each).replace(": ", " : ") for each in MAIL]

    whole = (await planned("responses", content, keep=("mcp__mail__*",), cloud=cloud)).content().decode()
    part = (await planned("responses", content, keep=("*send_mail",), cloud=cloud)).content().decode()

    assert mail in whole
    assert mail.replace(f"[{sending}, {listing}]", f"[{sending}]") in part
    assert "mcp__shop" not in whole + part


async def test_what_is_chosen_stays_in_its_namespace() -> None:
    chosen = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "thing_07"}]}
    request = await planned("responses", body_of("responses", listed(), tool_choice=chosen))
    space = {**chosen, "tools": [{"type": "namespace", "name": "mcp__mail"}]}
    other = await planned("responses", body_of("responses", listed(), tool_choice=space))

    assert "mcp__shop.thing_07" in tools_in(json.loads(request.content()))
    assert {"mcp__mail.send_mail", "mcp__mail.list_mails"} <= {*tools_in(json.loads(other.content()))}


async def test_namespaces_without_servers_are_searched_if_there_is_nothing_else() -> None:
    """Those of their tools that the system text names are kept."""
    tools = [namespace("mail", *MAIL), namespace("shop", *things())]
    request = await planned(
        "responses", body_of("responses", tools, instructions="Use\nthing_03 in the shop, mail or not.")
    )

    assert tools_in(json.loads(request.content())) == ["shop.thing_03", *OURS]


async def test_entries_of_a_namespace_that_cannot_be_searched_stay_in_it() -> None:
    odd = [PATCH, {**tool("late", "Deferred."), "defer_loading": True}, {"type": "function", "name": "no name"}]
    request = await planned("responses", body_of("responses", listed(SEARCH, namespace("mcp__odd", *things(12), *odd))))
    assert tools_in(json.loads(request.content()))[-5:-2] == [
        "mcp__odd.apply_patch", "mcp__odd.late", "mcp__odd.no name"
    ]  # fmt: skip


async def test_lists_whose_namespaces_have_one_name_are_left_alone() -> None:
    twice = [namespace("mcp__shop", *things()), namespace("mcp__shop", tool("buy", "Buys."))]
    with pytest.raises(PassUnchangedError, match="one name"):
        await planned("responses", body_of("responses", twice))
    same = [namespace("mcp__shop", *things()), tool("mcp__shop__thing_01", "Another.")]
    with pytest.raises(PassUnchangedError, match="one name"):
        await planned("responses", body_of("responses", same))


async def test_a_client_with_its_own_search_keeps_its_other_tools() -> None:
    """With too few of servers beside it, its request is left alone."""
    own = [tool(f"own_{number}", "Own.") for number in range(30)]
    late = {**tool("mcp__late__tool", "Deferred."), "defer_loading": True}
    with pytest.raises(PassUnchangedError, match="own tool search, the tools are too few"):
        await planned("responses", body_of("responses", [*own, SEARCH, late]))
    shop = [{**each, "name": f"mcp__shop__{each['name']}"} for each in things()]
    request = await planned("responses", body_of("responses", [*own, SEARCH, late, *shop]), settings=ALWAYS)

    names = names_in(request.content())
    assert names == ["tool_search", "mcp__late__tool", *sorted(each["name"] for each in own), *OURS]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_that_repeats_the_list_repeats_that_of_the_client(api: LoopbackApi, is_streamed: bool) -> None:
    api.is_strict = False
    api.script(Reply('See "tools".'))
    body = json.loads(body_of("responses", listed(), stream=is_streamed, tool_choice="required"))
    with served_proxy(api.url) as url:
        answer = httpx2.post(f"{url}/v1/responses", json=body).raise_for_status()

    data = re.findall("(?m)^data: (.*)$", answer.text) if is_streamed else [f'{{"response":{answer.text}}}']
    responses = [each["response"] for each in map(json.loads, data) if "response" in each]
    assert len(responses) == (2 if is_streamed else 1)
    assert all((each["tools"], each["tool_choice"]) == (listed(), "required") for each in responses)
    assert responses[-1]["output"][0]["content"][0]["text"] == 'See "tools".'
