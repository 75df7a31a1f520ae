"""One piece of work with a session: it is read, worked with in memory, and written.

The work is the calls of one reply (`ConversationScope`), or tools that are shown, pinned or forgotten by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType

from toolsearch.discovery.call_tools import CALL_TOOLS, READ_SKILL_TOOL
from toolsearch.discovery.view import View
from toolsearch.errors import BadArgumentsError
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.skills import NoSkill, as_read
from toolsearch.sessions.store import SessionStore
from toolsearch.threads import search_threads
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, TOOL_NAME
from toolsearch.tools.results import ToolOutput


class UnitOfWork:
    """A context manager, ``with`` or ``async with``: it reads a session by *begin*, and writes it when the block is
    done.

    ``async with`` reads and writes in a thread if that can take long. Other work with the session may go on meanwhile.
    If the block fails, nothing is written, and its changes stay in memory until other work writes them.
    """

    def __init__(self, sessions: SessionStore, begin: Callable[[], Conversation]) -> None:
        self._sessions = sessions
        self._begin = begin
        self._conversation: Conversation | None = None

    def __enter__(self) -> Conversation:
        self._conversation = self._begin()
        return self._conversation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._conversation is not None:
            self._conversation.save()

    async def __aenter__(self) -> Conversation:
        self._conversation = await self._sessions.run(self._begin)
        return self._conversation

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._conversation is not None:
            await self._conversation.written()


@dataclass(frozen=True, slots=True)
class ConversationScope:
    """The tools that *conversation* may run: a `ToolScope`.

    runs  tools that run in the place of those in the catalog, by name
    """

    conversation: Conversation
    runs: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    searching: asyncio.Lock = field(default_factory=asyncio.Lock)
    resolved: set[str] = field(default_factory=set[str])

    def resolve(self, name: str) -> Tool:
        if name == CALL_TOOL:  # only calls that name no tool come here; others were replaced by calls of the tool
            return Tool(CALL_TOOLS[CALL_TOOL], callback=_NothingToCall())
        if name == READ_SKILL:  # likewise
            return Tool(READ_SKILL_TOOL, callback=NoSkill(self.conversation))
        tool = self.conversation.resolve(name)
        if name != TOOL_NAME:
            self.resolved.add(name)
            tool = self.runs.get(name, tool)
            return as_read(self.conversation, tool) if tool.is_skill else tool
        # SearchArguments checks what models send, and it accepts more than the schema does.
        definition = replace(tool.definition, input_schema=NO_PARAMETERS)
        return replace(tool, definition=definition, callback=_SearchCallback(self.conversation, self.searching))

    def begin_call(self, name: str) -> None:
        if name in self.resolved:  # a person may have taken hours to approve the call
            self.conversation.require_in_reach(name)
        self.conversation.state.discovered.begin_call(name)

    def end_call(self, name: str) -> None:
        self.conversation.state.discovered.end_call(name)


@dataclass(frozen=True, slots=True)
class _SearchCallback:
    """Runs the searches of one reply one after the other, so that found tools are always listed in the same order."""

    conversation: Conversation
    searching: asyncio.Lock

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        async with self.searching:
            return await search_threads.run(self.conversation.answer, arguments)


@dataclass(frozen=True, slots=True)
class _NothingToCall:
    """Answers calls of the call tool that do not name a tool that it can run."""

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        raise BadArgumentsError(
            f"{CALL_TOOL} runs a tool that {TOOL_NAME} has found: give its 'name', and its 'arguments' as an object"
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """*names* were dealt with, in the order asked for. *not_found* are not in reach, whether or not they exist.

    too_long  are in reach, but cannot be shown: see `Budget`
    """

    names: tuple[str, ...]
    not_found: tuple[str, ...] = ()
    too_long: tuple[str, ...] = ()


def expand(conversation: Conversation, names: Iterable[str]) -> Chosen:
    """Show these tools from now on, as if a search had found them."""
    asked = _in_reach(conversation.view, names)
    shown = [tool for tool in map(conversation.shown_tool, asked.names) if tool is not None]
    conversation.add(shown)
    expanded = tuple(tool.name for tool in shown)
    return Chosen(expanded, asked.not_found, tuple(name for name in asked.names if name not in expanded))


def pin(conversation: Conversation, names: Iterable[str]) -> Chosen:
    """Show these tools from now on, and never evict them."""
    chosen = expand(conversation, names)
    conversation.state.discovered.pins |= frozenset(chosen.names)
    return chosen


def unpin(conversation: Conversation, names: Collection[str]) -> Chosen:
    """Let these tools be evicted as others are. Names that were not pinned are in `Chosen.not_found`."""
    discovered = conversation.state.discovered
    pinned = {name for name in discovered.pins if conversation.view.allows(name)}
    known = tuple(name for name in dict.fromkeys(names) if name in pinned)
    discovered.pins -= frozenset(known)
    return Chosen(known, tuple(name for name in dict.fromkeys(names) if name not in pinned))


def forget(conversation: Conversation, names: Collection[str]) -> Chosen:
    """Stop showing these tools, except pins and tools that are being called.

    A list that the model's provider may have cached does not shrink for that; see `Budget`. Names that were not
    discovered are in `Chosen.not_found`.
    """
    discovered, view = conversation.state.discovered, conversation.view
    shown = [name for name in discovered.tools if view.allows(name)]
    discovered.retain([name for name in discovered.tools if name not in names or name not in shown])
    gone = tuple(name for name in shown if name in names and name not in discovered)
    return Chosen(gone, tuple(name for name in dict.fromkeys(names) if name not in shown))


def _in_reach(view: View, names: Iterable[str]) -> Chosen:
    asked = tuple(dict.fromkeys(names))
    found = tuple(name for name in asked if view.allows(name))
    return Chosen(found, tuple(name for name in asked if name not in found))
