"""An MCP server over stdio, on the official SDK, with one tool for each thing that has to pass through a gateway."""

import asyncio
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)

server = MCPServer("table")
hanging = asyncio.Event()
cancelled = asyncio.Event()


class Colour(BaseModel):
    colour: str


def ask_for_a_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool(annotations=READS)
async def count_slowly(steps: int, ctx: Context) -> str:
    """Count up to a number and say how far it has come."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.tool(annotations=READS)
async def hang() -> str:
    """Never answer."""
    hanging.set()
    try:
        await asyncio.Event().wait()
    finally:
        cancelled.set()
    raise AssertionError


@server.tool(annotations=READS)
async def await_hanging() -> str:
    """Wait until a call hangs."""
    await hanging.wait()
    return "hanging"


@server.tool(annotations=READS)
async def await_cancelled() -> str:
    """Wait until the hanging call was cancelled."""
    await cancelled.wait()
    return "cancelled"


@server.tool(annotations=READS)
async def paint(answer: Annotated[Colour, Resolve(ask_for_a_colour)]) -> str:
    """Ask the user for a colour and paint in it."""
    return f"painted {answer.colour}"


@server.tool(annotations=READS)
async def grow(ctx: Context) -> str:
    """Add a tool for harvesting, or take it away, and say that the list has changed."""
    known = {tool.name for tool in await server.list_tools()}
    if "harvest" in known:
        server.remove_tool("harvest")
    else:
        server.add_tool(lambda: "harvested", name="harvest", description="Bring in the crop.", annotations=READS)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    server.run("stdio")
