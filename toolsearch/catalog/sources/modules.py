"""The public functions of a Python module as a source of tools."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from toolsearch.catalog.source import LoadReport
from toolsearch.errors import BadToolError, SourceError
from toolsearch.tools.decorator import tool_from_function
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import namespaced
from toolsearch.tools.python_only import reason_against
from toolsearch.tools.refusal import Refusal
from toolsearch.tools.signature import underlying


class ModuleSource:
    """The functions that ``__all__`` lists or, without one, the public functions defined in the module.

    The server is the module's name; ``os.path`` gives ``os_path__join``. Importing a module runs it.
    """

    def __init__(self, module: str | ModuleType) -> None:
        self._module = module
        self._name = module if isinstance(module, str) else module.__name__
        self.description = f"module {self._name}"

    def load(self) -> LoadReport:
        """Raises SourceError if the module cannot be imported."""
        tools: list[Tool] = []
        refused: list[Refusal] = []
        module = self._import()
        for name, function in _public_functions(module):
            try:
                tools.append(self._make_tool(name, function))
            except BadToolError as error:
                refused.append(Refusal(namespaced(self._name, name), self.description, str(error)))
        return LoadReport(tuple(tools), tuple(refused), {self._name: module.__doc__ or ""})

    def close(self) -> None:
        """Nothing is held."""

    def _import(self) -> ModuleType:
        if isinstance(self._module, ModuleType):
            return self._module
        try:
            return importlib.import_module(self._module)
        except Exception as error:  # a module runs its own code, so anything may be raised
            raise SourceError(f"module {self._module!r} cannot be imported: {error}") from error

    def _make_tool(self, name: str, function: Callable[..., Any]) -> Tool:
        is_alias = name != getattr(underlying(function), "__name__", name)
        tool = tool_from_function(function, server=self._name, name=name if is_alias else None)
        reason = reason_against(function)
        if reason:
            raise BadToolError(f"{name} cannot be a tool: {reason}")
        return tool


def _public_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    listed: list[str] | None = getattr(module, "__all__", None)
    for name in tuple(vars(module) if listed is None else listed):
        value = getattr(module, name, None)
        if inspect.isroutine(value) and (listed is not None or _is_own(module, name, value)):
            yield name, value


def _is_own(module: ModuleType, name: str, function: Callable[..., Any]) -> bool:
    return not name.startswith("_") and getattr(function, "__module__", None) == module.__name__
