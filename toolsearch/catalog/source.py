"""The interface of a source of tools, its report, and the checks of its tools.

Most definitions come from strangers. `by_name` demands that all are good; `sift` leaves the bad ones out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, runtime_checkable

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadToolError, DuplicateToolError
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, TOOL_NAME, require_legal_name
from toolsearch.upstreams.interface import ServerHealth


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The tools and refusals of a source, in the source's own order.

    purposes  server -> its purpose in its own words, if known; a catalog keeps one line of each
    """

    tools: tuple[Tool, ...]
    refused: tuple[Refusal, ...] = ()
    purposes: Mapping[str, str] = field(default_factory=dict[str, str])


class Source(Protocol):
    """A source of tools. A bad tool is refused and the others load; SourceError means that nothing can be read."""

    @property
    def description(self) -> str:
        """A description for people: a path, ``module statistics``."""
        ...

    def load(self) -> LoadReport:
        """Read the tools. May block for seconds; called once per catalog."""
        ...

    def close(self) -> None:
        """Close connections and end processes. The tools' callbacks stop working. May be called twice."""
        ...


@runtime_checkable
class LiveSource(Source, Protocol):
    """A source whose tools change while it is open."""

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        """Call *changed* with all tools whenever they change, until `close`. Called once, after `load`.

        If the tools have changed since `load` began to read, *changed* is called at once. It may be called from any
        thread, but not by two at the same time. It returns at once and never raises.
        """
        ...


@runtime_checkable
class KnowsServers(Protocol):
    """A source that knows how its servers are at the moment."""

    def server_health(self) -> Mapping[str, ServerHealth]:
        """Return the health by server, also of servers whose tools are not known yet. May be called in any thread."""
        ...


MAX_CHARACTERS = 500_000  # characters of the schemas as JSON; no model could read more
MAX_DEPTH = 100  # levels of nesting; later code may walk schemas recursively


def check_tool(tool: Tool) -> None:
    """Raise BadToolError unless models can be shown *tool*: a legal name, an object's schema, JSON of sane size."""
    definition = tool.definition
    require_legal_name(definition.name)
    if definition.name in (TOOL_NAME, CALL_TOOL, READ_SKILL):
        raise BadToolError(f"the name {definition.name!r} is taken by tool search itself; give this tool another")
    root_type = definition.input_schema.get("type")
    if root_type != "object":
        raise BadToolError(f"{definition.name}: the input schema must have type 'object', not {root_type!r}")
    parts = [definition.input_schema, definition.output_schema, definition.annotations]
    try:
        text = json.dumps(parts, allow_nan=False, sort_keys=True)  # sorted because fingerprints need that order
    except RecursionError:
        raise BadToolError(f"{definition.name}: its schemas are nested too deeply; flatten them") from None
    except (TypeError, ValueError) as error:
        raise BadToolError(f"{definition.name}: its schemas and annotations must be plain JSON: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise BadToolError(
            f"{definition.name}: its schemas take {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed"
        )
    if text.count("{") + text.count("[") > MAX_DEPTH and is_deeper_than(MAX_DEPTH, parts):
        raise BadToolError(f"{definition.name}: its schemas are nested more than {MAX_DEPTH} deep; flatten them")


def is_deeper_than(limit: int, value: Json) -> bool:
    """Whether containers nest more than *limit* deep in *value*, which must have no cycles."""
    level: list[Json] = [value]
    for _ in range(limit + 1):
        level = [child for container in level for child in _children(container)]
        if not level:
            return False
    return True


def _children(container: Json) -> list[Json]:
    values = container.values() if is_object(container) else container
    return [value for value in values if isinstance(value, (Mapping, list, tuple))]


ToolLike: TypeAlias = object  # a ToolDefinition, or anything that `as_tools` takes


def by_name(tools: Iterable[ToolLike]) -> dict[str, Tool]:
    """Return *tools* under their names. Raises BadToolError or DuplicateToolError."""
    new: dict[str, Tool] = {}
    for tool in (tool for item in tools for tool in _tools_in(item)):
        check_tool(tool)
        if tool.name in new:
            raise DuplicateToolError(tool.name, first=new[tool.name].owner, second=tool.owner)
        new[tool.name] = tool
    return new


def with_spec(report: LoadReport, spec: str) -> LoadReport:
    if not spec:
        return report
    return replace(report, tools=tuple(replace(tool, spec=spec) if tool.callback else tool for tool in report.tools))


def sift(tools: Iterable[Tool], description: str) -> tuple[list[Tool], list[Refusal]]:
    """Return the good tools, and a refusal for each bad one; *description* names their source."""
    good: list[Tool] = []
    refused: list[Refusal] = []
    for tool in tools:
        try:
            check_tool(tool)
        except BadToolError as error:
            refused.append(refusal(tool, description, error))
        else:
            good.append(tool)
    return good, refused


def refusal(tool: Tool, description: str, error: Exception) -> Refusal:
    return Refusal(tool.name, tool.source or description, str(error))


def _tools_in(item: ToolLike) -> list[Tool]:
    if isinstance(item, Tool):
        return [item]
    if isinstance(item, ToolDefinition):
        return [Tool(item)]
    from toolsearch.tools.providers import as_tools

    return as_tools(item)
