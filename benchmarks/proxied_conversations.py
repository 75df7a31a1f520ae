"""Conversations of ten turns, with the official SDKs, directly and through the proxy, for `benchmarks.proxy`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from benchmarks.clients.installing import pinned
from tests.kit.framework_environment import environments_folder
from tests.kit.loopback import (
    Call,
    LoopbackApi,
    PromptCache,
    Reply,
    anthropic_messages,
    available_tools,
    models,
    openai_chat,
    openai_responses,
)
from tests.kit.proxied import served_proxy
from tests.kit.proxy_clients import CLIENTS
from tests.kit.real_clients import asked, published_tools
from toolsearch.settings import Settings
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.wire.capabilities import Cloud
from toolsearch.wire.formats import WireFormat

DIRECT: Final = "direct"
_CLAUDE_CODE: Final[Mapping[str, tuple[Cloud, str]]] = {
    DIRECT: ("", "claude-opus-5"),
    "messages": ("", "claude-opus-5"),
    "deferred": ("", "claude-sonnet-5"),
    "fixed": ("other", "claude-opus-5"),
}
QUERY: Final = "list the users of a group"
_TURNS: Final = (0, 1, 2, 0, 3, 1, 4, 4, 2, 0)  # which of five tools each turn is about


@dataclass(frozen=True)
class Wire:
    """*modes* are the ways of showing found tools, with whose API each is for; *entries* is the conversation's key."""

    name: str
    wire_format: WireFormat
    path: str
    entries: str
    dialect: ModuleType
    modes: Mapping[str, Cloud]
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def client(self, url: str) -> Any:
        return CLIENTS[self.name](url, more=dict(self.more))


_MARKED: Final[Mapping[str, Any]] = {"cache_control": {"type": "ephemeral"}}
WIRES: Final = (
    Wire(
        *("messages", "anthropic", "/v1/messages", "messages", anthropic_messages),
        modes={"messages": "", "fixed": "other"},
        more=_MARKED,
    ),
    Wire(
        *("responses", "openai-responses", "/v1/responses", "input", openai_responses),
        modes={"messages": "", "fixed": "other"},
    ),
    Wire("chat", "openai", "/v1/chat/completions", "messages", openai_chat, modes={"fixed": "other"}),
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of all prompts of one conversation, by the rules of the provider's cache.

    breaks  requests that did not read all that the request before had left in the cache
    calls   calls that the client has run
    """

    wire: str
    way: str
    requests: int
    prompt: int
    read: int
    written: int
    breaks: int
    calls: int


@dataclass
class _Model:
    """It calls *wanted* by its name or by the call tool, once it has the definition, and searches for it before."""

    api: LoopbackApi
    wire: Wire
    wanted: str = ""
    is_called: bool = False
    searched: set[str] = field(default_factory=set[str])

    def answer(self, _: Mapping[str, Any]) -> Reply:
        available = available_tools(self.api.requests[-1])
        if self.is_called:
            return Reply("That is done.")
        if self.wanted in available:
            return self._call(self.wanted)
        if self.wanted in self.searched:
            return self._call(CALL_TOOL, name=self.wanted, arguments={})
        self.searched.add(self.wanted)
        words = self.wanted.replace("_", " ")
        return Reply(calls=[Call(TOOL_NAME, CLIENTS[self.wire.name].arguments(queries=[words]))])

    def _call(self, tool: str, /, **arguments: Any) -> Reply:
        self.is_called = True
        return Reply(calls=[Call(tool, CLIENTS[self.wire.name].arguments(**arguments))])


def played(
    wire: Wire, tools: Sequence[Mapping[str, Any]], definitions: Sequence[ToolDefinition], way: str = DIRECT
) -> tuple[Tokens, list[Any]]:
    """Play the conversation; return its tokens, and its history as the client has it.

    way  DIRECT, or one of the modes of *wire*

    The user's words name no tool, so that each of five tools has to be searched for once.
    """
    chosen = definitions[:: len(definitions) // len({*_TURNS})]
    with _served() as api, ExitStack() as opened:
        cache = api.cache = PromptCache(lambda: 0.0)
        model = _Model(api, wire)
        api.answer = model.answer
        url = api.url
        if way != DIRECT:
            opened.enter_context(patch.dict("os.environ", NO_PROXY="127.0.0.1"))
            url = opened.enter_context(served_proxy(api.url, settings=Settings(), cloud=wire.modes[way]))
        client, calls = wire.client(url), 0
        for turn, place in enumerate(_TURNS):
            model.wanted, model.is_called = chosen[place].name, False
            said = client.ask(f"Go on with number {turn} of the list.", tools)
            while said.calls:
                calls += len(said.calls)
                said = client.give(*["It is done. " * 20 for _ in said.calls], tools=tools)
        if api.refusals:
            raise RuntimeError(f"the API of {wire.name} has refused a request: {api.refusals[0]}")
    return _counted(wire.name, way, cache, calls), client.history


def claude_code(folder: Path) -> Generator[Tokens]:
    """Have Claude Code do one task with the tools of five published servers, directly and in each way, in *folder*.

    Raises NotInstalledError.
    """
    programs, tools = pinned(environments_folder()), asyncio.run(published_tools(folder))
    for way, (cloud, model) in _CLAUDE_CODE.items():
        _, run = asked("claude-code", programs, tools, folder / way, cloud=cloud, model=model, is_behind=way != DIRECT)
        cache = PromptCache(lambda: 0.0)
        for request in run.requests:
            cache.use(request.path, request.body["model"], anthropic_messages.rendered(request.body))
        yield _counted("Claude Code", way, cache, len(run.seen[-1].results))


def _counted(name: str, way: str, cache: PromptCache, calls: int) -> Tokens:
    uses = [asdict(use) for use in cache.uses]
    prompt, read, written = (sum(use[each] for use in uses) for each in ("prompt", "read", "written"))
    breaks = sum(use["read"] < use["readable"] for use in uses)
    return Tokens(name, way, len(uses), prompt, read, written, breaks, calls)


@contextmanager
def _served() -> Generator[LoopbackApi]:
    """An API that takes more tools than OpenAI does, so that all can be sent to it directly."""
    with patch.object(models, "MAX_FUNCTIONS", 1_000_000), LoopbackApi() as api:
        thread = threading.Thread(target=api.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()
