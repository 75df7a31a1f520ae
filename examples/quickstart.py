"""A catalog of Python functions: search it, let a session discover tools, and call one."""

from __future__ import annotations

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

from toolsearch import Catalog, ToolSearch, tool


@tool(tags=["time"])
def convert_time(moment: str, source: str, target: str) -> str:
    """Convert a moment from one time zone to another.

    Args:
        moment: ISO 8601 without an offset, such as 2026-11-21T09:30.
        source: The IANA time zone of the moment, such as Europe/Oslo.
        target: The IANA time zone wanted.
    """
    return datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(source)).astimezone(ZoneInfo(target)).isoformat()


async def main() -> None:
    catalog = Catalog([convert_time])
    for module in ("statistics", "textwrap", "math", "calendar"):
        catalog.load(f"module:{module}")

    with ToolSearch(catalog) as engine:
        for reference in engine.search("convert a date between time zones", limit=3):
            print(f"{reference.score:.2f}  {reference.name}: {reference.summary}")

        session = engine.session("user-42")
        print([entry["function"]["name"] for entry in session.tools(format="openai")])

        answer = await session.call("toolSearchTool", {"query": "median of numbers", "limit": 2})
        print(answer.text)
        print([entry["function"]["name"] for entry in session.tools(format="openai")])

        result = await session.call("statistics__median", {"data": [3, 1, 4, 1, 5]})
        print(result.text)
        session.end_turn()


if __name__ == "__main__":
    asyncio.run(main())
