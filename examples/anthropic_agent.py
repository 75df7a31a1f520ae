"""An agent loop with the Anthropic SDK: the model sees one tool, finds what it needs, and calls it.

ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_MODEL say where and which.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from anthropic import AsyncAnthropic

from toolsearch import Catalog, ToolSearch
from toolsearch.wire import sendable_messages


async def answer(client: AsyncAnthropic, model: str, engine: ToolSearch, question: str) -> str:
    session = engine.session("example")
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        tools = session.request("anthropic", model=model, cache_prompt=True)
        sent = sendable_messages(messages, "anthropic")
        reply = await client.messages.create(max_tokens=1_000, messages=sent, **tools)
        messages.append({"role": "assistant", "content": reply.content})  # unchanged, because thinking is signed
        results = await session.execute(reply)
        if not results and reply.stop_reason != "pause_turn":  # a paused reply is sent back unchanged
            session.end_turn()
            return "".join(block.text for block in reply.content if block.type == "text")
        messages += results


async def main() -> None:
    if not os.environ.get("ANTHROPIC_API_KEY"):
        sys.exit("Set ANTHROPIC_API_KEY first, and ANTHROPIC_BASE_URL for an endpoint that is not Anthropic's.")
    catalog = Catalog()
    for module in ("statistics", "math", "calendar", "textwrap"):
        catalog.load(f"module:{module}")
    model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-6")
    with ToolSearch(catalog) as engine:
        print(await answer(AsyncAnthropic(), model, engine, "What is the median of 3, 1, 4, 1 and 5?"))


if __name__ == "__main__":
    asyncio.run(main())
