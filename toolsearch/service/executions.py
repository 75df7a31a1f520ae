"""What runs the stored tools of a tenant: an operation over HTTP, a function of this process, or the caller itself."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.service.http_tools import HttpTools
from toolsearch.service.python_tools import PythonTools
from toolsearch.service.stored_tools import MakeCallback
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import ToolCallback
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Executions:
    http_tools: HttpTools
    python_tools: PythonTools

    def of_tenant(self, tenant: str) -> MakeCallback:
        def make_callback(row: StoredTool, execution: JsonObject) -> ToolCallback | None:
            match execution.get("kind"):
                case "http":
                    return self.http_tools.callback(tenant, execution)
                case "python":
                    return self.python_tools.callback(tenant, row, execution)
                case _:
                    return None

        return make_callback
