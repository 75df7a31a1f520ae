"""Two clients of a FastMCP server at once, whose users have wishes; then small things about the same transform.

Prints, of each user, the tools in each list and what the tools answered; which calls the hook and the server's own
middleware saw; and what the others have come to.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server.middleware import Middleware
from toolbox import WISHES, Wish, tools

from toolsearch import Allow, ToolCallingManager, ToolSearch
from toolsearch.adapters.fastmcp import ToolSearchTransform

logging.disable()  # FastMCP logs what a tool raises


class Notes(Middleware):
    def __init__(self) -> None:
        self.called: list[str] = []

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        self.called.append(context.message.name)
        return await call_next(context)


def server_of(functions: Sequence[Any], transform: ToolSearchTransform) -> FastMCP:
    server = FastMCP("office", transforms=[transform])
    for function in functions:
        server.tool(function)
    return server


async def names(client: Client) -> list[str]:
    return [tool.name for tool in await client.list_tools()]


async def call(client: Client, called: str, /, **arguments: Any) -> list[Any]:
    answer = await client.call_tool(called, arguments, raise_on_error=False)
    return [answer.content[0].text, answer.is_error]


async def talk(server: FastMCP, mode: Any, wishes: Sequence[Wish]) -> dict[str, Any]:
    listed, found, told = [], [], []
    async with Client(server, mode=mode) as client:
        for wish in wishes:
            listed.append(await names(client))
            found.append((await client.call_tool("toolSearchTool", {"queries": [wish.query]})).structured_content)
            told.append(await call(client, "callTool", name=wish.name, arguments={"id": wish.id}))
        listed.append(await names(client))
    return {"listed": listed, "found": found, "told": told}


async def conversations() -> dict[str, Any]:
    asked: list[str] = []
    notes = Notes()
    engine = ToolSearch([], manager=ToolCallingManager(before=[lambda call, *_: asked.append(call.name) or Allow()]))
    server = server_of(tools(), ToolSearchTransform(engine))
    server.add_middleware(notes)
    async with asyncio.TaskGroup() as group:
        ann = group.create_task(talk(server, "auto", WISHES["ann"]))  # of 2026: no session
        bob = group.create_task(talk(server, "legacy", WISHES["bob"]))
    return {"ann": ann.result(), "bob": bob.result(), "asked": sorted(asked), "called": sorted(notes.called)}


async def small_things() -> dict[str, Any]:
    server = server_of(tools(), ToolSearchTransform(pins=["count.all"]))

    @server.tool(name="count.all")
    def count_all(most: int) -> dict[str, int]:
        """Count all that there is."""
        return {"counted": most}

    few = server_of(tools()[:3], ToolSearchTransform())
    server.disable(names={"rename_invoice"})
    async with Client(server) as client, Client(few) as other:
        return {
            "pinned": await names(client),
            "few": await names(other),
            "by legal name": await call(client, "callTool", name="count_all", arguments={"most": 3}),
            "by own name": await call(client, "count.all", most=4),
            "wrong arguments": await call(client, "callTool", name="count_all", arguments={"most": "many"}),
            "hidden is found": "rename_invoice"
            in (await call(client, "toolSearchTool", queries=["rename invoice"]))[0],
            "hidden is called": await call(client, "callTool", name="rename_invoice", arguments={"id": "7"}),
        }


print(json.dumps({**asyncio.run(conversations()), "small things": asyncio.run(small_things())}))
