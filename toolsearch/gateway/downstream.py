"""The client of one request, as what a server may say to it and ask of it while the request runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from toolsearch.gateway.callers import Context
from toolsearch.gateway.principals.protocol import Caller


@dataclass(frozen=True, slots=True)
class SdkDownstream:
    """The client of one request, as a `Downstream`."""

    ctx: Context
    caller: Caller

    @property
    def session_key(self) -> str:
        return self.caller.session_key or f"request {self.ctx.request_id}"

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {}  # nothing is passed on yet that a server could ask

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.ctx.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        raise MCPError(METHOD_NOT_FOUND, f"{method} is not passed on")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...
