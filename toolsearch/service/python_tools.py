"""Runs the Python tools that the operator has registered, in this process."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.errors import ToolExecutionError
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject


class PythonTools:
    """By tenant and spec, so that no row of another tenant runs what was registered for one."""

    def __init__(self) -> None:
        self._callbacks: dict[tuple[str, str, str], ToolCallback] = {}

    def add(self, tenant: str, spec: str, tools: Sequence[Tool]) -> None:
        self._callbacks |= {(tenant, spec, tool.name): tool.callback for tool in tools if tool.callback is not None}

    def callback(self, tenant: str, name: str, execution: JsonObject) -> ToolCallback:
        """What runs the tool of that name; it is looked up with each call, since it may be registered later."""
        return _Registered(self, tenant, str(execution.get("spec")), name)

    def find(self, tenant: str, spec: str, name: str) -> ToolCallback | None:
        return self._callbacks.get((tenant, spec, name))


class _Registered:
    def __init__(self, tools: PythonTools, tenant: str, spec: str, name: str) -> None:
        self._tools = tools
        self._of = (tenant, spec, name)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        callback = self._tools.find(*self._of)
        if callback is None:
            _, spec, name = self._of
            raise ToolExecutionError(
                f"the tool {name!r} is not registered in this process: start it with --tools {spec}"
            )
        return await callback.call(arguments, context)
