"""Runs the Python tools that the operator has registered, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolsearch.errors import ToolNotHereError
from toolsearch.service.stored_tools import definition_of
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject


class PythonTools:
    """By tenant and spec, so that no row of another tenant runs what was registered for one."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str, str], Tool] = {}

    def add(self, tenant: str, spec: str, tools: Sequence[Tool]) -> None:
        self._tools |= {(tenant, spec, tool.name): tool for tool in tools}

    def callback(self, tenant: str, row: StoredTool, execution: JsonObject) -> ToolCallback:
        """What runs the tool of *row*; it is looked up with each call, since it may be registered later."""
        return _Registered(self, tenant, str(execution.get("spec")), row)

    def find(self, tenant: str, spec: str, row: StoredTool) -> ToolCallback | None:
        """The function of *row*; None if this process has none, or one with other arguments or another result.

        A replica of another version may have written the row, and arguments are checked by what it says.
        """
        tool = self._tools.get((tenant, spec, row.name))
        if tool is None:
            return None
        ours, stored = tool.definition, definition_of(row)
        is_same = (ours.input_schema, ours.output_schema) == (stored.input_schema, stored.output_schema)
        return tool.callback if is_same else None


@dataclass(frozen=True, slots=True)
class _Registered:
    tools: PythonTools
    tenant: str
    spec: str
    row: StoredTool

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        callback = self.tools.find(self.tenant, self.spec, self.row)
        if callback is None:
            raise ToolNotHereError(self.row.name)
        return await run_callback(callback, arguments, context)
