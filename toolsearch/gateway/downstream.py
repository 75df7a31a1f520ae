"""The client of one request, as the servers see it: what they may tell it and ask it while the request runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import mcp.types as types
from mcp.server.connection import Connection
from mcp.shared.message import ServerMessageMetadata
from mcp.types import LOG_LEVEL_META_KEY
from pydantic import BaseModel, ConfigDict

from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.log_levels import is_wanted
from toolsearch.gateway.request_caller import Context
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.questions import ASKABLE, check_askable

_LOG_LEVEL = "toolsearch/log-level"
_requests = count(1)  # clients choose their own ids, so two clients may use the same


@dataclass(frozen=True, slots=True)
class SdkDownstream:
    """The client of one request, as a `Downstream`."""

    ctx: Context
    caller: Caller
    _key: str = field(default_factory=lambda: f"request {next(_requests)}")

    @property
    def session_key(self) -> str:
        return self.caller.session_key or self._key

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client has declared, without what cannot be used over this connection."""
        declared = self.caller.capabilities
        if self.caller.era is Era.MODERN:
            return declared
        if not self.ctx.session.can_send_request:
            return {}
        return {name: declared[name] for name in ASKABLE if name in declared}

    @property
    def log_level(self) -> str | None:
        if self.caller.era is Era.MODERN:
            meta: Mapping[str, Any] = self.ctx.meta or {}
            return meta.get(LOG_LEVEL_META_KEY)
        return connection_of(self.ctx).state.get(_LOG_LEVEL)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.ctx.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        check_askable(self.capabilities, method, params)
        answer = await self.ctx.session.send_request(
            cast("Any", _RawRequest(method=method, params=dict(params) or None)),
            _RawAnswer,
            metadata=ServerMessageMetadata(related_request_id=self.ctx.request_id),
        )
        return answer.model_dump(mode="json")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a message on. Log messages only go to a client that wants their level; clients of 2026 get none unless
        they ask.
        """
        level = self.log_level
        if level is None and self.caller.era is Era.MODERN:
            return
        if method == "notifications/message" and is_wanted(str(params.get("level")), level):
            message = types.LoggingMessageNotification.model_validate({"method": method, "params": params})
            await self.ctx.session.send_notification(message, related_request_id=self.ctx.request_id)


def connection_of(ctx: Context) -> Connection:
    """The connection of the client's session, which lasts as long as that. The SDK has no public name for it."""
    return cast("Connection", cast("Any", ctx.session)._connection)


def set_log_level(ctx: Context, level: str) -> None:
    """Remember from which level on the client of this session wants log messages."""
    connection_of(ctx).state[_LOG_LEVEL] = level


class _RawRequest(types.Request[dict[str, Any] | None, str]):
    """Any request, sent as it is."""


class _RawAnswer(BaseModel):
    """Any answer, as it came."""

    model_config = ConfigDict(extra="allow")
