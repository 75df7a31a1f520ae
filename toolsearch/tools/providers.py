"""Makes tools of an application's objects: functions, objects with `@tool` methods, providers, and lists of these.

Tools of LangChain are recognised by their documented attributes, so that LangChain need not be installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeGuard, cast

from toolsearch.errors import BadToolError, DuplicateToolError
from toolsearch.option_values import name_list
from toolsearch.tools.callbacks import run_function
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.function_tools import is_marked, tool_from_function
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import namespaced, title_with_name


class LangChainTool(Protocol):
    """The attributes of a LangChain ``BaseTool`` that we need."""

    name: str
    description: str

    @property
    def args(self) -> dict[str, Any]: ...
    def invoke(self, input: Any, /) -> Any: ...  # noqa: A002  LangChain's name for it
    async def ainvoke(self, input: Any, /) -> Any: ...  # noqa: A002


def is_langchain_tool(thing: object) -> TypeGuard[LangChainTool]:
    """Whether *thing* is an object with a name, a schema of arguments, and the methods of a LangChain tool."""
    return (
        not isinstance(thing, type)
        and hasattr(type(thing), "ainvoke")
        and hasattr(type(thing), "invoke")
        and hasattr(thing, "args_schema")
        and isinstance(getattr(thing, "name", None), str)
    )


def tool_from_langchain(given: LangChainTool) -> Tool:
    """Return *given* as a tool with a legal name and the same tags. Raises BadToolError without a usable schema.

    Arguments that LangChain would inject are neither shown to models nor filled in: there is no LangChain run.
    """
    tags: list[str] | None = getattr(given, "tags", None)
    definition = ToolDefinition(
        namespaced("", given.name),
        description=given.description,
        input_schema=_schema_of(given),
        title=title_with_name("", given.name),
        tags=name_list(tags or (), "tags", error=BadToolError),
    )
    metadata = ToolMetadata(return_direct=getattr(given, "return_direct", False) is True)
    return Tool(definition, _InvokeCallback(given), metadata, source=f"LangChain tool {given.name}")


@dataclass(frozen=True, slots=True)
class _InvokeCallback:
    tool: LangChainTool

    # LangChain has its own way to pass context.
    async def call(self, arguments: JsonObject, context: ToolContext) -> object:  # noqa: ARG002
        """A tool of a plain function runs in a thread of ours: LangChain would take one of the event loop's few."""
        if getattr(self.tool, "coroutine", True) is None:
            return await run_function(self.tool.invoke, dict(arguments))
        return await self.tool.ainvoke(dict(arguments))


def _schema_of(given: LangChainTool) -> dict[str, Json]:
    schema: Any = getattr(given, "args_schema", None)
    if schema is None:  # the tool takes a single text
        return {"type": "object", "properties": dict(given.args), "required": list(given.args)}
    schema = getattr(given, "tool_call_schema", schema)  # the schema without injected arguments
    if isinstance(schema, type):
        make: Callable[[], Any] | None = getattr(schema, "model_json_schema", None) or getattr(schema, "schema", None)
        schema = make() if make else None
    if not isinstance(schema, Mapping):
        raise BadToolError(f"the LangChain tool {given.name!r} has no args_schema that JSON Schema can be made of")
    of_arguments = cast("JsonObject", schema)
    return {key: value for key, value in of_arguments.items() if key not in ("title", "description")}


class ToolProvider(Protocol):
    """Gives tools when asked, once per request; a `Catalog` is one."""

    def tools(self) -> Iterable[Tool]: ...


class ToolCallbacks:
    """Makes tools of objects. The name comes from Spring AI."""

    @staticmethod
    def from_object(first: object, *more: object) -> list[Tool]:
        """Return a tool for each method of the objects that is marked with `@tool`.

        Inherited methods count, those of the base class first, each in its place; an unmarked method that overrides a
        marked one does not. A class gives its static and class methods, a module its marked functions. Raises
        BadToolError if an object has no such method, DuplicateToolError if two tools have the same name.
        """
        return distinct_tools(tool for each in (first, *more) for tool in _tools_of(each))


def as_tools(*things: object) -> list[Tool]:
    """Return the tools of *things*, in their order, each of them a Tool, a function, a ToolProvider, an object with
    `@tool` methods, a tool of LangChain, or an iterable of such things.

    Providers are asked now. Raises BadToolError, or DuplicateToolError if two tools have the same name; the very same
    Tool given twice counts once.
    """
    return distinct_tools(tool for thing in things for tool in _as_tools(thing))


def distinct_tools(tools: Iterable[Tool]) -> list[Tool]:
    """Return *tools* without repetitions. Raises DuplicateToolError, which names both owners."""
    return list(tools_by_name(tools).values())


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return *tools* under their names, in their order. Raises DuplicateToolError."""
    found: dict[str, Tool] = {}
    for tool in tools:
        first = found.setdefault(tool.name, tool)
        if first is not tool:
            raise DuplicateToolError(tool.name, first=first.owner, second=tool.owner)
    return found


def _as_tools(thing: object) -> Iterable[Tool]:
    if isinstance(thing, Tool):
        return [thing]
    if is_langchain_tool(thing):  # asked before iteration, because every pydantic model is iterable
        return [tool_from_langchain(thing)]
    if inspect.isroutine(thing):
        return [tool_from_function(thing)]
    if _is_provider(thing):
        return _provided(thing)
    if _marked_names(thing):
        return _tools_of(thing)
    if isinstance(thing, str | bytes | Mapping | AbstractSet):
        kind = type(cast("object", thing)).__name__
        raise BadToolError(f"a {kind} is no tool; give tools, functions or objects, or a list of them")
    if isinstance(thing, Iterable):
        return [tool for each in cast("Iterable[object]", thing) for tool in _as_tools(each)]
    if callable(thing):
        return [tool_from_function(thing)]
    return _tools_of(thing)


def _is_provider(thing: object) -> TypeGuard[ToolProvider]:
    """Whether *thing* is a provider. An object may also have a tool that is named ``tools``."""
    return inspect.ismethod(getattr(thing, "tools", None)) and "tools" not in _marked_names(thing)


def _provided(provider: ToolProvider) -> list[Tool]:
    given: list[object] = list(provider.tools())
    tools = [tool for tool in given if isinstance(tool, Tool)]
    if len(tools) < len(given):
        raise BadToolError(f"the tools() of a {type(provider).__name__} gave something that is not a Tool")
    return tools


def _tools_of(thing: object) -> list[Tool]:
    names = _marked_names(thing)
    if not names:
        kind = thing.__name__ if isinstance(thing, type | ModuleType) else type(thing).__name__
        raise BadToolError(f"{kind} has no method marked with @tool; mark those that a model may call")
    return [tool_from_function(getattr(thing, name)) for name in names]


def _marked_names(thing: object) -> list[str]:
    if isinstance(thing, ModuleType):
        return [name for name, value in vars(thing).items() if is_marked(value)]
    owner = thing if isinstance(thing, type) else type(thing)
    names = dict.fromkeys(name for each in reversed(owner.__mro__) for name in vars(each))
    return [name for name in names if is_marked(_most_derived(owner, name))]


def _most_derived(owner: type, name: str) -> Any:
    """The attribute *name* of *owner* without running descriptors: looking at a property must not call it."""
    return next(vars(each)[name] for each in owner.__mro__ if name in vars(each))
