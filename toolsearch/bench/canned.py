"""Sessions in which searches run and tools do not: what a tool answers is known before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict

from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.port import ToolScope
from toolsearch.tools.blocks import text_block
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject

ANSWERS: Final = "canned answers"  # in the context of calls: by the call's id, what the tool answers


class Clock:
    """The time of a conversation that is played: *now_s* is set by who plays it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class CannedManager(ToolCallingManager):
    """Gives each call the answer that its context has for it, and runs nothing but searches."""

    async def execute(
        self,
        calls: Sequence[ToolCall],
        scope: ToolScope,
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
    ) -> list[ToolResult]:
        answers = (context or {}).get(ANSWERS)
        if answers is None:
            return await super().execute(calls, scope, context=context, turn=turn)
        return [_answered(call, scope, answers) for call in calls]


class CannedOptions(TypedDict):
    """Of what an engine takes, see `ToolSearch`."""

    manager: ToolCallingManager
    clock: Clock
    options: SessionOptions


class _NotRun:
    """Makes a tool one that can be called: answers to searches mark those that cannot."""

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        raise NotImplementedError("tools are answered for by the `CannedManager`")


def callable_tools(tools: Iterable[Tool]) -> list[Tool]:
    """*tools*, each with a callback, also if it comes from a listing, which has nothing to run it."""
    return [tool if tool.callback is not None else replace(tool, callback=_NotRun()) for tool in tools]


def engine_options(clock: Clock, options: SessionOptions | None = None) -> CannedOptions:
    """What an engine is made with for conversations to be played over its catalog: tools are searched, however few."""
    searched = replace(options or SessionOptions(), pass_through=PassThrough(0))
    return {"manager": CannedManager(), "clock": clock, "options": searched}


def _answered(call: ToolCall, scope: ToolScope, answers: Mapping[str, str]) -> ToolResult:
    scope.resolve(call.name)  # as a call that runs
    return ToolResult(call.id, call.name, (text_block(answers[call.id]),))
