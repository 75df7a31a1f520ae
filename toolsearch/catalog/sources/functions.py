"""Python functions as a source of tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from toolsearch.catalog.source import LoadReport
from toolsearch.errors import BadToolError
from toolsearch.tools.decorator import tool_from_function
from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal


class FunctionSource:
    """Functions in the order given; with *server*, their names begin with ``<server>__``."""

    def __init__(self, functions: Iterable[Callable[..., Any]], *, server: str = "") -> None:
        self._functions = tuple(functions)
        self._server = server
        self.description = f"Python functions of {server}" if server else "Python functions"

    def load(self) -> LoadReport:
        tools: list[Tool] = []
        refused: list[Refusal] = []
        for function in self._functions:
            try:
                tools.append(tool_from_function(function, server=self._server))
            except BadToolError as error:
                name = getattr(function, "__name__", repr(type(function)))
                refused.append(Refusal(name, self.description, str(error)))
        return LoadReport(tuple(tools), tuple(refused))

    def close(self) -> None:
        """Nothing is held."""
