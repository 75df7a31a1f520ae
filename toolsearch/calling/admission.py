"""Whether a call may run at all: its tool is known and in reach, and its arguments fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.calling.validation import checked_arguments
from toolsearch.errors import ToolSearchError, UnfinishedCallError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.own_arguments import own_arguments


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run: its tool is known and in reach, and *arguments* fit. *key* is the turn counter's, if any."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    key: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that will not be run."""

    call: ToolCall
    error: ToolSearchError


def admit(call: ToolCall, resolve: Callable[[str], Tool]) -> Admitted:
    """Return *call* with its tool, which *resolve* finds by name within the caller's reach, and its checked arguments.

    A model may have been sent other names for some of the parameters; from here on, the arguments have the tool's own.
    Raises what *resolve* does, UnfinishedCallError before that, and BadArgumentsError.
    """
    if call.unfinished:
        raise UnfinishedCallError(call.unfinished)
    tool = resolve(call.name)
    arguments = own_arguments(tool.definition.input_schema, call.parsed_arguments)
    return Admitted(call, tool, checked_arguments(tool.definition, arguments))
