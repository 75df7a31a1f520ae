"""The client of FastMCP over stdio; its arguments, lines and end are those of ``mcp_sdk_task.py``."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    tool, arguments, command, *rest = sys.argv[1:]
    async with Client(StdioTransport(command, rest)) as client:
        print(json.dumps([each.name for each in await client.list_tools()]), flush=True)
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps([getattr(block, "text", "") for block in result.content]), flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
