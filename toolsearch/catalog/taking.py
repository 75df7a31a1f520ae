"""Turns what a catalog is given into tools: all must be good (`by_name`), or the bad ones are left out (`sift`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from toolsearch.catalog.checks import check_tool
from toolsearch.catalog.source import LoadReport
from toolsearch.errors import BadToolError, DuplicateToolError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.refusal import Refusal

ToolLike: TypeAlias = object  # a ToolDefinition, or what `as_tools` takes


def by_name(tools: Iterable[ToolLike]) -> dict[str, Tool]:
    """Raises BadToolError or DuplicateToolError."""
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
    """Return the good tools, and a refusal for each bad one; *description* says where they came from."""
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
