"""Two users of a Claude agent at once, and then a guest who may rename nothing. A script that speaks the SDK's control
protocol stands in for Claude Code.

Prints, of each user, the tools in each list that Claude Code gets and what the tools answered, and which calls the hook
was asked about.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, Transport
from toolbox import WISHES, Wish, tools

from toolsearch import Allow, Gateway, Principal, Reach, ToolSearch, read_gateway_config
from toolsearch.adapters.claude_agent_sdk import sdk_server

CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "2.1.0"},
}


DONE = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
    "session_id": "default",
}


class ClaudeCode(Transport):
    """Stands in for the program: for each thing the user says it lists the tools, searches for one and calls it."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self.wishes = list(wishes)
        self.listed: list[list[str]] = []
        self.told: list[Any] = []
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = count(1)
        self._turns: set[asyncio.Task[None]] = set()

    async def connect(self) -> None: ...
    async def end_input(self) -> None: ...
    def is_ready(self) -> bool:
        return True

    async def close(self) -> None:
        self._out.put_nowait(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._out.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._out.put_nowait({"type": "control_response", "response": answer})
        elif message["type"] == "control_response":
            answer = message["response"]
            self._asked.pop(answer["request_id"]).set_result(answer["response"]["mcp_response"])
        else:
            self._turns.add(asyncio.create_task(self._turn(self.wishes.pop(0))))

    async def _turn(self, wish: Wish) -> None:
        if not self.listed:
            await self._ask("initialize", CLIENT)
            await self._ask("notifications/initialized")
        listed = await self._ask("tools/list", {})
        self.listed.append([tool["name"] for tool in listed["tools"]])
        found = await self._call("toolSearchTool", {"queries": [wish.query]})
        call_tool = re.search(rf'{{"name":"{wish.name}","callWith":"(\w+)"', found[0]) or ["", "callToolDestructive"]
        self.told.append(await self._call(call_tool[1], {"name": wish.name, "arguments": {"id": wish.id}}))
        self._out.put_nowait(DONE)

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        answer = await self._ask("tools/call", {"name": name, "arguments": arguments})
        return answer["content"][0]["text"], answer.get("isError", False)

    async def _ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        number = next(self._numbers)
        identity = {} if params is None else {"id": number, "params": params}
        message = {"jsonrpc": "2.0", "method": method, **identity}
        request = {"subtype": "mcp_message", "server_name": "toolsearch", "message": message}
        asked = self._asked[str(number)] = asyncio.get_running_loop().create_future()
        self._out.put_nowait({"type": "control_request", "request_id": str(number), "request": request})
        answer = await asked
        return answer["result"]


async def talk(options: ClaudeAgentOptions, program: ClaudeCode, wishes: Sequence[Wish]) -> None:
    async with ClaudeSDKClient(options, transport=program) as client:
        for wish in wishes:
            await client.query(wish.said)
            async for message in client.receive_response():
                assert isinstance(message, ResultMessage), message


async def main() -> None:
    asked: list[str] = []
    programs = {user: ClaudeCode(wishes) for user, wishes in WISHES.items()}
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
            programs["guest"] = ClaudeCode(WISHES["ann"])
            await talk(options, programs["guest"], WISHES["ann"][:1])
    listed = {user: program.listed for user, program in programs.items()}
    told = {user: program.told for user, program in programs.items()}
    print(json.dumps({"listed": listed, "told": told, "asked": sorted(asked)}))  # noqa: T201


asyncio.run(main())
