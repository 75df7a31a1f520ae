"""What runs the stored tools of a tenant: an operation over HTTP, a function of this process, or the caller itself."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.service.http_tools import HttpTools
from toolsearch.service.imports.reading import HTTP
from toolsearch.service.stored_tools import MakeCallback
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import ToolCallback
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Executions:
    http_tools: HttpTools

    def of_tenant(self, tenant: str) -> MakeCallback:
        def make_callback(_row: StoredTool, execution: JsonObject) -> ToolCallback | None:
            if execution.get("kind") == HTTP:
                return self.http_tools.callback(tenant, execution)
            return None

        return make_callback
