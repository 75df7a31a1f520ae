"""`@tool`: make a tool of a Python function, and leave the function what it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from toolsearch.errors import BadToolError
from toolsearch.tools.callbacks import FunctionCallback
from toolsearch.tools.definition import Json, JsonObject, Tool, ToolDefinition, ToolMetadata
from toolsearch.tools.docstrings import read_docstring
from toolsearch.tools.naming import namespaced, require_legal_name
from toolsearch.tools.signature import read_signature, underlying

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_ATTRIBUTE = "__toolsearch_tool__"


@dataclass(frozen=True, slots=True)
class _Options:
    name: str | None = None
    description: str | None = None
    title: str = ""
    tags: tuple[str, ...] = ()
    annotations: JsonObject = field(default_factory=dict[str, Json])
    metadata: ToolMetadata = field(default_factory=ToolMetadata)


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a decorated function carries. functools.wraps copies it to wrappers, which then are another function."""

    function: Callable[..., Any]
    options: _Options
    tool: Tool


@overload
def tool(name: AnyFunction, /) -> AnyFunction: ...


@overload
def tool(
    name: str | None = None,
    description: str | None = None,
    *,
    title: str = "",
    tags: Iterable[str] = (),
    annotations: JsonObject | None = None,
    return_direct: bool = False,
    timeout_s: float | None = None,
) -> Callable[[AnyFunction], AnyFunction]: ...


def tool(
    name: Callable[..., Any] | str | None = None,
    description: str | None = None,
    *,
    title: str = "",
    tags: Iterable[str] = (),
    annotations: JsonObject | None = None,
    return_direct: bool = False,
    timeout_s: float | None = None,
) -> Callable[..., Any]:
    """Define a tool by a function's signature and docstring; usable bare (``@tool``) or with options.

    The function stays itself and carries its definition, for `Catalog` and `tool_from_function` to find.
    name, description  default to the function's own and to its docstring without the parameters' part
    annotations        MCP's hints, such as ``{"readOnlyHint": True}``
    return_direct      the result goes to the caller instead of the model
    timeout_s          seconds that one call may take
    Raises BadToolError at once if the function cannot be a tool.
    """
    if timeout_s is not None and not timeout_s > 0:
        raise BadToolError(f"timeout_s must be positive, got {timeout_s}")
    options = _Options(
        name=None if callable(name) else name,
        description=description,
        title=title,
        tags=tuple(tags),
        annotations=dict(annotations or {}),
        metadata=ToolMetadata(return_direct=return_direct, timeout_s=timeout_s),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        carried = _Carried(function, options, _build(function, options, server=""))
        setattr(function, _ATTRIBUTE, carried)
        return function

    return decorate(name) if callable(name) else decorate


def tool_from_function(function: Callable[..., Any], *, server: str = "", name: str | None = None) -> Tool:
    """Make a tool of *function*; what `@tool` said of it holds.

    With *server*, the name becomes ``<server>__<name>`` and is made legal. Raises BadToolError if the function
    cannot be a tool.
    """
    carried: _Carried | None = getattr(function, _ATTRIBUTE, None)
    if carried is not None and carried.function is function and not server and name is None:
        return carried.tool
    return _build(function, carried.options if carried else _Options(), server=server, name=name)


def _build(function: Callable[..., Any], options: _Options, *, server: str, name: str | None = None) -> Tool:
    own_name = name or options.name or str(getattr(underlying(function), "__name__", type(function).__name__))
    full_name = namespaced(server, own_name) if server else own_name
    require_legal_name(full_name)
    try:
        _require_plain(function)
        doc = read_docstring(underlying(function).__doc__)
        signature = read_signature(function, doc.parameters)
    except BadToolError as error:
        raise BadToolError(f"{own_name} cannot be a tool: {error}") from error
    definition = ToolDefinition(
        name=full_name,
        description=doc.description if options.description is None else options.description,
        input_schema=signature.input_schema,
        title=options.title,
        annotations=options.annotations,
        server=server,
        tags=options.tags,
    )
    return Tool(definition, FunctionCallback(function, signature), options.metadata, source=_source_of(function))


def _require_plain(function: Callable[..., Any]) -> None:
    if inspect.isclass(function):
        raise BadToolError("it is a class; give a function that makes one, or one of its methods")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadToolError("it is a generator; return a list instead")


def _source_of(function: Callable[..., Any]) -> str:
    below = underlying(function)
    name = getattr(below, "__qualname__", type(function).__qualname__)
    module = getattr(below, "__module__", None)  # None for methods of builtin types
    return f"function {module}.{name}" if module else f"function {name}"
