"""Tools of LangChain, recognised by their documented attributes, so that LangChain need not be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, cast

from toolsearch.errors import BadToolError
from toolsearch.option_values import name_list
from toolsearch.tools.callbacks import run_function
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import namespaced, title_with_name


class LangChainTool(Protocol):
    """What is needed of a LangChain ``BaseTool``."""

    name: str
    description: str

    @property
    def args(self) -> dict[str, Any]: ...
    def invoke(self, input: Any, /) -> Any: ...  # noqa: A002  its name there
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

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:  # noqa: ARG002  it has a way of its own
        """A tool of a plain function runs in a thread of ours: LangChain would take one of the event loop's few."""
        if getattr(self.tool, "coroutine", True) is None:
            return await run_function(self.tool.invoke, dict(arguments))
        return await self.tool.ainvoke(dict(arguments))


def _schema_of(given: LangChainTool) -> dict[str, Json]:
    schema: Any = getattr(given, "args_schema", None)
    if schema is None:  # one text, which is all that it takes
        return {"type": "object", "properties": dict(given.args), "required": list(given.args)}
    schema = getattr(given, "tool_call_schema", schema)  # without what is injected
    if isinstance(schema, type):
        make: Callable[[], Any] | None = getattr(schema, "model_json_schema", None) or getattr(schema, "schema", None)
        schema = make() if make else None
    if not isinstance(schema, Mapping):
        raise BadToolError(f"the LangChain tool {given.name!r} has no args_schema that JSON Schema can be made of")
    of_arguments = cast("JsonObject", schema)
    return {key: value for key, value in of_arguments.items() if key not in ("title", "description")}
