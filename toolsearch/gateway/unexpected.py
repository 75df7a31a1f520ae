"""What a client gets when a request fails in a way that nobody foresaw: a number to look up, and nothing raw."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeAlias, TypeVar

from mcp import MCPError
from mcp.types import INTERNAL_ERROR
from pydantic import ValidationError

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.proxy.raw_results import raw_call_result
from toolsearch.gateway.proxy.verbatim import failure
from toolsearch.gateway.request_caller import Context
from toolsearch.tools.blocks import text_block

logger = logging.getLogger(__name__)

_Params = TypeVar("_Params")
Handler: TypeAlias = Callable[[Context, _Params], Awaitable[Any]]


class FailureGuard:
    """Goes around handlers: the SDK would send clients the text of an exception, with what paths and secrets it has."""

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
                if ctx.method == "tools/call":
                    return raw_call_result(result)
                raise MCPError(INTERNAL_ERROR, text) from error

        return guarded

    def _failure(self, ctx: Context, error: Exception) -> tuple[str, dict[str, Any]]:
        if isinstance(error, ToolSearchError):
            return str(error), failure(error)
        incident = next(self._incidents)
        logger.error("incident %d: %s, request %s", incident, ctx.method, ctx.request_id, exc_info=error)
        text = f"The gateway failed at this request; its log says how, as incident {incident}"
        return text, {"content": [text_block(text)], "isError": True, "_meta": {"toolsearch/error": "internal_error"}}
