"""The official Python SDK over stdio: `python mcp_sdk_task.py TOOL ARGUMENTS COMMAND...`.

It prints the names of the tools, and then the texts of the result of a call, as lines of JSON. It stays connected until
its stdin is closed.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main() -> None:
    tool, arguments, command, *rest = sys.argv[1:]
    async with Client(stdio_client(StdioServerParameters(command=command, args=rest))) as client:
        listed = [each.name for each in (await client.list_tools()).tools]
        print(json.dumps(listed), flush=True)
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps([getattr(block, "text", "") for block in result.content]), flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
