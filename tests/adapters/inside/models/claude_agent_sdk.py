"""A stand-in for Claude Code, which speaks the SDK's control protocol and asks servers of the application by MCP."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from claude_agent_sdk import Transport
from claude_agent_sdk._internal.transport import subprocess_cli

CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "2.1.0"},
}
ENDED = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
    "session_id": "default",
}


class ClaudeCode(Transport):
    """Does *turn* for each thing the user says. Its one server is called toolsearch."""

    def __init__(self) -> None:
        self.listed: list[list[str]] = []
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = count(1)
        self._turns: set[asyncio.Task[None]] = set()

    async def turn(self, said: str) -> str:
        """Return what the model says in the end."""
        raise NotImplementedError

    async def list_tools(self) -> None:
        if not self.listed:
            await self._ask("initialize", CLIENT)
            await self._ask("notifications/initialized")
        answer = await self._ask("tools/list", {})
        self.listed.append([tool["name"] for tool in answer["tools"]])

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The text of the answer, and whether it is an error."""
        answer = await self._ask("tools/call", {"name": name, "arguments": arguments})
        return answer["content"][0]["text"], answer.get("isError", False)

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
            self._asked.pop(answer["request_id"]).set_result(answer["response"]["mcp_response"]["result"])
        else:
            self._turns.add(asyncio.create_task(self._take_turn(message["message"]["content"])))

    async def _take_turn(self, said: str) -> None:
        try:
            self._out.put_nowait({**ENDED, "result": await self.turn(said)})
        except Exception as error:  # noqa: BLE001  the program that is tested has to end
            self._out.put_nowait({**ENDED, "is_error": True, "result": repr(error)})

    async def _ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        number = next(self._numbers)
        identity = {} if params is None else {"id": number, "params": params}
        message = {"jsonrpc": "2.0", "method": method, **identity}
        request = {"subtype": "mcp_message", "server_name": "toolsearch", "message": message}
        asked = self._asked[str(number)] = asyncio.get_running_loop().create_future()
        self._out.put_nowait({"type": "control_request", "request_id": str(number), "request": request})
        return await asked


def scripted(*replies: Any) -> None:
    """Let the SDK start a stand-in that calls what *replies* say, and ends with the last of them, which is a text."""

    class Scripted(ClaudeCode):
        async def turn(self, said: str) -> str:
            await self.list_tools()
            for calls in replies[:-1]:
                for call in calls:
                    text, is_error = await self.call(*call)
                    assert not is_error, text
            return replies[-1]

    subprocess_cli.SubprocessCLITransport = lambda **_: Scripted()
