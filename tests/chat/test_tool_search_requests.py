"""Requests are searched, and never said: no byte of them is on the wire of a whole conversation."""

import json
from pathlib import Path

import pytest

from tests.kit.loopback import Call, LoopbackApi, Reply, available_tools
from tests.kit.tool_search import OPTIONS, TOOLS
from toolsearch import Catalog, Reach, ToolSearch
from toolsearch.catalog.requests_file import packed_tool, write_requests
from toolsearch.chat.client import ChatClient
from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.chat.tool_search import ToolSearchAdvisor

SECRETS = ("kingfishers over Aalborg", "marmalade for the harbour")


def enriched(tmp_path: Path) -> ToolSearch:
    """An engine whose every tool is also found by *SECRETS*."""
    file, catalog = tmp_path / "requests.jsonl", Catalog(TOOLS)
    write_requests(file, [packed_tool(tool.definition, SECRETS) for tool in catalog])
    return ToolSearch(catalog, encoder=None, options=OPTIONS, requests_files=[file])


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(("claude-fable-5-1", mode) for mode in ("messages", "deferred", "fixed")),
        *(("gpt-5.4", mode) for mode in ("messages", "deferred", "fixed", "append")),
        *(("chat:gpt-4.1", mode) for mode in ("fixed", "append")),
    ],
)
async def test_no_model_is_shown_a_request(api: LoopbackApi, tmp_path: Path, kind: str, mode: str) -> None:
    model: AnthropicModel | OpenAIChatModel | OpenAIResponsesModel
    if kind.startswith("claude"):
        model = AnthropicModel(kind, base_url=api.url, api_key="k", cloud="")
    elif kind.startswith("chat:"):
        model = OpenAIChatModel(kind[5:], base_url=api.openai_url, api_key="k", cloud="")
    else:
        model = OpenAIResponsesModel(kind, base_url=api.openai_url, api_key="k", cloud="")

    def replies():  # type: ignore[no-untyped-def]
        yield Reply(calls=[Call("toolSearchTool", {"query": "kingfishers"})])
        is_shown = "send_mail" in available_tools(api.requests[-1])
        mail = {"to": "Ann"}
        yield Reply(
            calls=[Call("send_mail", mail) if is_shown else Call("callTool", {"name": "send_mail", "arguments": mail})]
        )
        yield Reply(calls=[Call("toolSearchTool", {"query": query}) for query in ("marmalade", "/harbou/")])
        yield Reply("Done.")

    script = replies()
    api.answer = lambda _: next(script)
    with enriched(tmp_path) as engine:
        advisor = ToolSearchAdvisor(engine, mode=mode)  # type: ignore[arg-type]
        answer = await ChatClient(model, advisors=[advisor]).prompt("Go.").context(conversation_id="a").call()
    await model.close()

    wire = json.dumps([api.bodies, str(answer)])
    assert (api.refusals, len(api.bodies)) == ([], 4)
    assert "sent '' to Ann" in wire
    for words in ("over Aalborg", "for the harbour"):
        assert words not in wire


def test_requests_bring_no_tool_into_reach(tmp_path: Path) -> None:
    with enriched(tmp_path) as engine:
        everything = {hit.name for hit in engine.search("kingfishers", limit=50)}
        narrow = engine.session("a", deny=["send_mail"])
        assert "send_mail" in everything
        assert {hit.name for hit in engine.search("kingfishers", limit=50, reach=Reach.parse(["send_mail"]))} == {
            "send_mail"
        }
        narrow.search("kingfishers")
        assert "send_mail" not in narrow.discovered
        assert narrow.discovered != []
