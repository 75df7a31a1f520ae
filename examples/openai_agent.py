"""An agent loop with the OpenAI SDK: the model sees one tool, finds what it needs, and calls it.

Works with any compatible endpoint: OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL say which.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from openai import AsyncOpenAI

from toolsearch import Catalog, ToolSearch
from toolsearch.wire import sendable_messages


async def answer(client: AsyncOpenAI, model: str, engine: ToolSearch, question: str) -> str:
    session = engine.session("example")
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        tools = session.request("openai", model=model)
        reply = await client.chat.completions.create(messages=sendable_messages(messages, "openai"), **tools)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            session.end_turn()
            return message.content or ""
        messages += await session.execute(reply)


async def main() -> None:
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("Set OPENAI_API_KEY first, and OPENAI_BASE_URL for an endpoint that is not OpenAI's.")
    catalog = Catalog()
    for module in ("statistics", "math", "calendar", "textwrap"):
        catalog.load(f"module:{module}")
    model = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
    with ToolSearch(catalog) as engine:
        print(await answer(AsyncOpenAI(), model, engine, "What is the median of 3, 1, 4, 1 and 5?"))


if __name__ == "__main__":
    asyncio.run(main())
