"""Result converters: how the author of a tool decides what a model reads of its results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, cast

from toolsearch.errors import BadToolError
from toolsearch.tools.json_types import Json
from toolsearch.tools.output import ToolOutput


class ToolCallResultConverter(Protocol):
    """Converts what tools return. It must not wait for anything, since other calls wait for it meanwhile.

    A large value is converted in a thread, so it must be safe to call from several at once. Where the return type does
    not matter, a plain function of the value will do.
    """

    def convert(self, value: Any, return_type: Any, /) -> ToolOutput | str | Json:
        """Return content blocks, text, or a value with a JSON form, for what the tool returned (None as well).

        *return_type* is what the tool's function is annotated to return: Any if that is not known, and for no value
        None's type. An exception is a failed call.
        """
        ...


Converter: TypeAlias = ToolCallResultConverter | Callable[[Any], Any]


def converted_by(converter: Converter, value: object, callback: object) -> object:
    """What *converter* makes of *value*, which *callback* has returned."""
    convert = getattr(converter, "convert", None)
    if convert is None:
        return cast("Callable[[Any], object]", converter)(value)
    return convert(value, getattr(callback, "return_type", Any))


def require_converter(converter: object) -> None:
    """Raise BadToolError for what cannot convert a result."""
    convert = getattr(converter, "convert", converter)
    if isinstance(converter, type) and convert is not converter:
        raise BadToolError(f"result_converter must be an object, not the class {converter.__name__}; make one of it")
    if not callable(convert):
        raise BadToolError("result_converter must have a method 'convert', or be a function of one value")
    if inspect.iscoroutinefunction(convert):
        raise BadToolError("result_converter must be plain, not async; do what has to wait in the tool itself")
