"""Python functions as a source of tools: given functions, or the public functions of a module.

Functions whose parameters or results have no JSON form are left out, if their documentation says so.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import importlib
import inspect
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from inspect import Parameter
from pathlib import PurePath
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from toolsearch.catalog.source import LoadReport
from toolsearch.errors import BadToolError, SourceError
from toolsearch.tools.byte_parameters import ARTICLES, is_documented_as
from toolsearch.tools.definition import Refusal, Tool
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.json_schema import UNUSABLE_TYPE
from toolsearch.tools.naming import namespaced
from toolsearch.tools.results import ToolOutput
from toolsearch.tools.signature import type_hints, underlying


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
        """Does nothing, because nothing is open."""


_OURS = (str, bytes, bytearray, memoryview, Enum, PurePath, Mapping, MappingView, AbstractSet, Sequence, ToolOutput)
_WRITTEN_BY = ("__pydantic_serializer__", "_asdict", "tolist", "hexdigest")


@functools.cache
def has_json_form(kind: type[object]) -> bool:
    """Whether instances of *kind* can be results of calls. A subclass of *kind* may have a JSON form even if *kind* has
    none.
    """
    if issubclass(kind, _OURS) or dataclasses.is_dataclass(kind) or any(hasattr(kind, name) for name in _WRITTEN_BY):
        return True
    if issubclass(kind, type) or hasattr(kind, "__next__"):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            TypeAdapter(kind)
    except UNUSABLE_TYPE:
        return False
    return True


_NAMES = frozenset(  # parameters that old functions use for live Python objects only
    {
        "callable", "callback", "cls", "code", "coro", "fileobj", "fn", "fp", "frame", "fsrc", "func",
        "function", "generator", "key_func", "klass", "loop", "module", "predicate", "readline", "sock", "stream", "tb",
        "traceback",
    }
)  # fmt: skip

_LIVE = (
    r"(?:file-like objects?|binary files?"
    r"|(?:file|code|frame|socket|module|class|type|generator|callable|coroutine|function|stream) objects?"
    r"|(?:generator|callable|coroutine|decorator|context manager)s?)\b"
)

_RETURNED = re.compile(
    rf"\breturn(?:s|ing)? (?:it as )?{ARTICLES}(?P<kind>iterator|generator|context manager|decorator|temporary file"
    r"|(?:[\w-]+ ){0,2}(?:iterator|generator|file|socket|thread|process|lock|semaphore|event"
    r"|condition|queue|barrier|connection|compressor|decompressor|code|frame|module|polling|pool|shared) object)\b"
    rf"|\bcreate (?:and return )?{ARTICLES}(?P<made>temporary file|lock object)\b",
    re.IGNORECASE,
)

_DECORATOR = re.compile(r"(?:an? )?decorator (?:factory|for|that|to|used)\b|[^.]* decorator\.?\Z", re.IGNORECASE)
_CLASS = re.compile(r"\b[Rr]eturn(?:s|ing)? (?:(?:an?|the|new|current|main) )*(?P<name>[A-Z]\w+) (?:object|instance)\b")


def reason_against(function: Callable[..., Any]) -> str | None:
    """The reason why no model can call *function* or read its result; None if nothing says so.

    Optional parameters do not count. Parameters with annotations do not count either, because `read_signature` reads
    them.
    """
    doc = inspect.getdoc(underlying(function)) or ""
    for parameter in inspect.signature(function).parameters.values():
        if _is_needed(parameter) and (parameter.name in _NAMES or is_documented_as(_LIVE, parameter.name, doc)):
            return f"its parameter {parameter.name!r} takes a Python object, not JSON"
    hints = type_hints(function)
    if "return" in hints:
        returned = _annotated(hints["return"])
    else:
        returned = _documented(" ".join(doc.partition("\n\n")[0].split()), underlying(function))
    return f"it returns a Python object ({returned}), which has no JSON form" if returned else None


def _is_needed(parameter: Parameter) -> bool:
    is_left_out = parameter.default is not Parameter.empty or parameter.kind is Parameter.VAR_KEYWORD
    return not is_left_out and parameter.annotation is Parameter.empty


def _annotated(annotation: Any) -> str:
    """The annotated type, if it belongs to the standard library and has no JSON form. Types that derive from others may
    have one.
    """
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    members = typing.get_args(annotation) if is_union else (annotation,)
    kinds = [typing.get_origin(member) or member for member in members if member is not types.NoneType]
    if kinds and all(isinstance(kind, type) and _is_closed(kind) and not has_json_form(kind) for kind in kinds):
        return " or ".join(kind.__name__ for kind in kinds)
    return ""


def _is_closed(kind: type) -> bool:
    is_open = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return not is_open and kind.__module__.partition(".")[0] in sys.stdlib_module_names


def _documented(opening: str, function: Callable[..., Any]) -> str:
    """The result without a JSON form that *opening*, the first paragraph of the documentation, names, or ""."""
    if _DECORATOR.match(opening):
        return "decorator"
    if named := _RETURNED.search(opening):
        return named["kind"] or named["made"]
    module = sys.modules.get(getattr(function, "__module__", None) or "", builtins)
    for match in _CLASS.finditer(opening):
        kind = getattr(module, match["name"], None)
        if isinstance(kind, type) and not has_json_form(kind):
            return f"{match['name']} object"
    return ""


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
        """Does nothing, because nothing is open."""

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
