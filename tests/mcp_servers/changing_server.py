"""An MCP server of both eras that is what a file says, as a package that updates itself.

python changing_server.py FOLDER [http PORT | sse PORT]

FOLDER/lists.json  what it lists, as {"tools": [...], "prompts": [...], "resources": [...], "templates": [...]} and its
                   "instructions"; read when it starts; where it "is_silent", it tells of no changes
FOLDER/ran         a line for all that was run: the definition that it had then
FOLDER/pids        a line for each start; FOLDER/listening  one for each stream that somebody hears of changes on

What it runs depends on the tool: "update" reads the file anew and says so, "update silently" does not say so, "wait"
waits for the file "go_on", and every other says what it is. A tool whose name begins with "second" is listed on a
second page; in place of that page, "cut": "error" gives an error and "cut": "exit" ends the process.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp import MCPError, types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route


class Changing(Server[Any]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._load()
        super().__init__(
            "changing",
            instructions=self._lists.get("instructions"),
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_completion=self._complete,
            on_subscriptions_listen=None if self._lists.get("is_silent") else self._listening,
        )

    def get_capabilities(self, _: Any = None, *more: Any, **options: Any) -> types.ServerCapabilities:
        tells = not self._lists.get("is_silent")
        told = NotificationOptions(prompts_changed=tells, resources_changed=tells, tools_changed=tells)
        return super().get_capabilities(told, *more, **options)

    async def _listening(self, ctx: Any, params: Any) -> Any:
        self._note("listening", "")
        return await self._listen(ctx, params)

    async def _tools(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        entries = self._lists.get("tools", [])
        first, second = ([e for e in entries if e["name"].startswith("second") is later] for later in (False, True))
        if params is not None and params.cursor:
            match self._lists.get("cut"):
                case "exit":
                    os._exit(1)
                case "error":
                    raise MCPError(-32000, "the disk is gone")
            return types.ListToolsResult.model_validate({"tools": second})
        return types.ListToolsResult.model_validate({"tools": first, "nextCursor": "2" if second else None})

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        (entry,) = (entry for entry in self._lists["tools"] if entry["name"] == params.name)
        self._note("ran", entry["description"])
        if params.name == "wait":
            while not (self._folder / "go_on").exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.002)
        if params.name.startswith("update"):
            self._load()
        if params.name == "update":
            await ctx.session.send_tool_list_changed()
            for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
                await self._bus.publish(event)
        return types.CallToolResult(content=[types.TextContent(type="text", text=entry["description"])])

    async def _prompts(self, *_: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": self._lists.get("prompts", [])})

    async def _prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        self._note("ran", f"prompt {params.name}")
        return types.GetPromptResult(messages=[])

    async def _resources(self, *_: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": self._lists.get("resources", [])})

    async def _templates(self, *_: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": self._lists.get("templates", [])})

    async def _read(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        self._note("ran", f"resource {params.uri}")
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="read")])

    async def _complete(self, _: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        self._note("ran", f"completion of {params.argument.name}")
        return types.CompleteResult(completion=types.Completion(values=[]))

    def _load(self) -> None:
        self._lists = json.loads((self._folder / "lists.json").read_text())

    def _note(self, name: str, line: str) -> None:
        with (self._folder / name).open("a") as file:
            file.write(f"{line}\n")


async def main(folder: Path, kind: str = "stdio", port: str = "0") -> None:
    with (folder / "pids").open("a") as file:
        file.write(f"{os.getpid()}\n")
    server = Changing(folder)
    if kind == "stdio":
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return
    app = server.streamable_http_app() if kind == "http" else over_sse(server)
    config = uvicorn.Config(app, port=int(port), log_config=None, ws="none", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve()


def over_sse(server: Server[Any]) -> Starlette:
    """The HTTP of before 2025."""
    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", stream, methods=["GET"]), Mount("/messages/", app=transport.handle_post_message)]
    return Starlette(routes=routes)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
