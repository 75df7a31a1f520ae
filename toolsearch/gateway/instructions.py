"""The instructions that clients get: the gateway's own, and after these the servers', bounded and marked as theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext

from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.request_caller import caller_of
from toolsearch.wire.mcp.envelope import as_private

MOST_CHARACTERS = 1_000  # of one server; a client pays for them with every request
MOST_CHARACTERS_IN_ALL = 4_000
_METHODS = ("initialize", "server/discover")


def pass_on_instructions(gateway: Gateway) -> ServerMiddleware[Any]:
    """The middleware that adds them to the answers to ``initialize`` and ``server/discover``."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in _METHODS or not isinstance(result, dict):
            return result
        await gateway.lists_settled()  # a client gives up if connecting and listing take 10 s together
        said = await asyncio.to_thread(instructions_for, gateway, caller_of(ctx))
        told = {**result, "instructions": said} if said else result
        return as_private(told)  # other callers get the instructions of other servers

    return middleware


def instructions_for(gateway: Gateway, caller: Caller, own: str | None = None) -> str:
    """What *caller* is told, with *own* in place of what the gateway says of itself now.

    Only instructions of admitted servers that the caller may know of are passed on.
    """
    own = gateway.surface.instructions(caller) if own is None else own
    return joined(own, gateway.content.instructions(caller))


def joined(own: str, theirs: Mapping[str, str]) -> str:
    """*own* and the words of each server after it.

    Each line of a server begins with ``> ``, so that none can look like ours. If something is left out for its length,
    that is said.
    """
    parts = [own] if own else []
    left = MOST_CHARACTERS_IN_ALL
    left_out = 0
    for server, text in sorted(theirs.items()):
        words = _shortened(text.strip())
        if len(words) > left:
            left_out += 1
            continue
        left -= len(words)
        quoted = "\n".join(f"> {line}" for line in words.splitlines())
        parts.append(f"The MCP server {server!r} says of itself, in words that are not ours:\n{quoted}")
    if left_out:
        parts.append(f"({left_out} more servers say something of themselves, which is left out for its length.)")
    return "\n\n".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."
