"""Result converters: how the author of a tool decides what a model reads of its results."""

from __future__ import annotations

from typing import Protocol

from toolsearch.tools.json_types import Json
from toolsearch.tools.output import ToolOutput


class ToolCallResultConverter(Protocol):
    """Any plain function of one value. It must not wait for anything, since other calls wait for it meanwhile.

    A large value is converted in a thread, so the function must be safe to call from several at once.
    """

    def __call__(self, value: object, /) -> ToolOutput | str | Json:
        """Return content blocks, text, or a value with a JSON form, for what the tool returned (None as well).

        An exception is a failed call.
        """
        ...
