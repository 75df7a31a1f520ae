"""Makes the ToolResult of a call out of what its tool returned or raised."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from toolsearch.calling.admission import Admitted
from toolsearch.calling.convert import capped, convert
from toolsearch.calling.plain_json import is_small
from toolsearch.errors import ToolExecutionError, ToolSearchError
from toolsearch.threads import in_thread
from toolsearch.tools.blocks import text_block
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.containment import contained
from toolsearch.tools.output import ToolOutput
from toolsearch.tools.results import Converter, converted_by

_T = TypeVar("_T")


async def converted(admitted: Admitted, value: object, max_characters: int) -> ToolResult:
    """Return *value* as the result of a call: converted in the tool's own way if it has one, and cut to
    *max_characters* of text. Raises what a converter raises.
    """
    call, metadata = admitted.call, admitted.tool.metadata
    is_failure = isinstance(value, ToolOutput) and value.is_error  # a converter must not turn it into a success
    if metadata.result_converter is not None and not is_failure:
        convert = partial(_converted, metadata.result_converter, admitted.tool.callback)
        value = await _off_the_loop_if_large(convert, value)
    output = await _off_the_loop_if_large(partial(_output, max_characters), value)
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=output.content,
        structured=output.structured,
        is_error=output.is_error,
        return_direct=metadata.return_direct and not output.is_error,
        error_code=ToolExecutionError.code if output.is_error else None,
    )


def failure(call: ToolCall, message: str, error: Exception, max_characters: int) -> ToolResult:
    """A result that tells the model *message*, and programs the code of *error*."""
    output = capped(ToolOutput((text_block(message),)), max_characters)
    code = error.code if isinstance(error, ToolSearchError) else ToolExecutionError.code
    return ToolResult(call.id, call.name, output.content, is_error=True, error_code=code)


def _converted(converter: Converter, callback: object, value: object) -> object:
    with contained("the tool's converter"):
        return converted_by(converter, value, callback)


def _output(max_characters: int, value: object) -> ToolOutput:
    with contained("the tool"):  # which the result's own methods are part of
        return capped(convert(value, max_characters), max_characters)


async def _off_the_loop_if_large(function: Callable[[object], _T], value: object) -> _T:
    """Return ``function(value)``. What takes long must not hold up every other task of the loop."""
    if is_small((value.content, value.structured) if isinstance(value, ToolOutput) else value):
        return function(value)
    return await in_thread(function, value)
