"""How one tool's result is made into what a model reads, where the default is not what its author wants."""

from __future__ import annotations

from typing import Protocol

from toolsearch.tools.json_types import Json
from toolsearch.tools.output import ToolOutput


class ToolCallResultConverter(Protocol):
    """Any plain function of one value will do. It must not wait for anything, since it runs between other calls.

    A large value is converted in a thread, so the function must be safe to call from several at once.
    """

    def __call__(self, value: object, /) -> ToolOutput | str | Json:
        """Return content blocks, text, or a value with a JSON form, for what the tool returned (None as well).

        An exception is a failed call.
        """
        ...
