"""Answers a request that fails in an unforeseen way: with an incident number to look up, and no internals."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeAlias, TypeVar

from mcp import MCPError
from mcp.types import INTERNAL_ERROR
from pydantic import ValidationError

from toolsearch.calling.failures import log_failure
from toolsearch.errors import ToolSearchError, text_for_model
from toolsearch.gateway.request_caller import Context
from toolsearch.wire.mcp.envelope import carrying
from toolsearch.wire.mcp.methods import CALL_TOOL
from toolsearch.wire.mcp.results import error_result

logger = logging.getLogger(__name__)

_Params = TypeVar("_Params")
Handler: TypeAlias = Callable[[Context, _Params], Awaitable[Any]]


class FailureGuard:
    """Wraps handlers. Without it the SDK would send clients the text of an exception, with the paths and secrets
    in it.
    """

    def __init__(self) -> None:
        self._incidents = count(1)

    def around(self, handler: Handler[_Params]) -> Handler[_Params]:
        """A failed ``tools/call`` is answered with a result, which models read, and anything else with an error."""

        async def guarded(ctx: Context, params: _Params) -> Any:
            try:
                return await handler(ctx, params)
            except (MCPError, ValidationError):  # the SDK answers these as the protocol has it
                raise
            except Exception as error:
                text, result = self._failure(ctx, error)
                if ctx.method == CALL_TOOL:
                    return carrying(CALL_TOOL, result)
                raise MCPError(INTERNAL_ERROR, text) from error

        return guarded

    def _failure(self, ctx: Context, error: Exception) -> tuple[str, dict[str, Any]]:
        if isinstance(error, ToolSearchError):
            log_failure(logger, f"{ctx.method} failed", error)
            text = text_for_model(error)
            return text, error_result(text, error.code)
        incident = next(self._incidents)
        logger.error("incident %d: %s, request %s", incident, ctx.method, ctx.request_id, exc_info=error)
        text = f"The gateway failed at this request; its log says how, as incident {incident}"
        return text, error_result(text, "internal_error")
