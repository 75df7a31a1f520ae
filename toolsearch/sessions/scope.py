"""A session as the calling manager sees it, for the calls of one reply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from toolsearch.discovery.call_tools import CALL_TOOLS
from toolsearch.errors import BadArgumentsError
from toolsearch.sessions.conversation import Conversation
from toolsearch.threads import search_threads
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.output import ToolOutput


@dataclass(frozen=True, slots=True)
class ConversationScope:
    """The tools that *conversation* may run: a `ToolScope`."""

    conversation: Conversation
    searching: asyncio.Lock = field(default_factory=asyncio.Lock)
    resolved: set[str] = field(default_factory=set[str])

    def resolve(self, name: str) -> Tool:
        if name == CALL_TOOL:  # its calls come here as those of the tools that they run, but for those that run none
            return Tool(CALL_TOOLS[CALL_TOOL], callback=_NothingToCall())
        tool = self.conversation.resolve(name)
        if name != TOOL_NAME:
            self.resolved.add(name)
            return tool
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
    """Searches of one reply run one after the other: what they find has to be listed in the same order every time."""

    conversation: Conversation
    searching: asyncio.Lock

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002  nothing of it is needed
        async with self.searching:
            return await search_threads.run(self.conversation.answer, arguments)


@dataclass(frozen=True, slots=True)
class _NothingToCall:
    """What a call of the call tool comes to that names no tool that it can run."""

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002  nothing of it is needed
        raise BadArgumentsError(
            f"{CALL_TOOL} runs a tool that {TOOL_NAME} has found: give its 'name', and its 'arguments' as an object"
        )
