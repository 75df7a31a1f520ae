"""Closing a stream of an answer, also when its reader leaves it early."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from toolsearch.wire.answers import ChatChunk


@asynccontextmanager
async def closing(chunks: AsyncIterator[ChatChunk]) -> AsyncGenerator[AsyncIterator[ChatChunk]]:
    """Close *chunks* on the way out, so that leaving a stream early ends the request behind it at once."""
    try:
        yield chunks
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
