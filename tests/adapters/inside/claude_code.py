"""Two users of a Claude agent at once, and then a guest who may rename nothing, with a stand-in for Claude Code.

Prints, of each user, the tools in each list that Claude Code gets and what the tools answered, and which calls the hook
was asked about.
"""

import asyncio
import json
import re
from collections.abc import Sequence

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage
from models.claude_agent_sdk import ClaudeCode
from toolbox import WISHES, Wish, tools

from toolsearch import Allow, Principal, Reach, ToolSearch
from toolsearch.adapters.claude_agent_sdk import sdk_server
from toolsearch.gateway import Gateway, read_gateway_config


class Program(ClaudeCode):
    """For each wish of the user it lists the tools, searches, and calls what it was looking for as the answer says."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        super().__init__()
        self.wishes = {wish.said: wish for wish in wishes}
        self.told: list[tuple[str, bool]] = []

    async def turn(self, said: str) -> str:
        wish = self.wishes[said]
        await self.list_tools()
        found, _ = await self.call("toolSearchTool", {"queries": [wish.query]})
        call_with = re.search(rf'{{"name":"{wish.name}","callWith":"mcp__toolsearch__(\w+)"', found)
        call_tool = call_with[1] if call_with else "callToolDestructive"
        self.told.append(await self.call(call_tool, {"name": wish.name, "arguments": {"id": wish.id}}))
        return "That is all."


async def talk(options: ClaudeAgentOptions, program: Program, wishes: Sequence[Wish]) -> None:
    async with ClaudeSDKClient(options, transport=program) as client:
        for wish in wishes:
            await client.query(wish.said)
            (message,) = [message async for message in client.receive_response()]
            assert isinstance(message, ResultMessage)
            assert message.result == "That is all."


async def main() -> None:
    asked: list[str] = []
    programs = {user: Program(wishes) for user, wishes in {**WISHES, "guest": WISHES["ann"]}.items()}
    config = read_gateway_config({"mcpServers": {}}, {})
    with ToolSearch(tools()) as engine:
        gateway = Gateway(config, engine=engine, before=[lambda call, *_: asked.append(call.name) or Allow()])
        async with gateway:
            options = ClaudeAgentOptions(mcp_servers={"toolsearch": sdk_server(gateway)})
            async with asyncio.TaskGroup() as group:
                for user, wishes in WISHES.items():
                    group.create_task(talk(options, programs[user], wishes))
            guest = Principal("guest", Reach.parse(deny=["rename_*"]))
            options = ClaudeAgentOptions(mcp_servers={"toolsearch": sdk_server(gateway, principal=guest)})
            await talk(options, programs["guest"], WISHES["ann"][:1])
    listed = {user: program.listed for user, program in programs.items()}
    told = {user: program.told for user, program in programs.items()}
    print(json.dumps({"listed": listed, "told": told, "asked": sorted(asked)}))


asyncio.run(main())
