"""An MCP server with all that a gateway may lose: contents of every kind, questions, progress, logs, resources.

Over stdio as a command, `python rich_server.py [NAME]`, or in the test's own process by `make_server`. It speaks both
of the protocol's eras, and asks in the way of whichever it is spoken to in.
"""
# ruff: noqa: ARG002  all methods are called alike

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.message import ServerMessageMetadata

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SAMPLING = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="2+2?"))],
        max_tokens=10,
    )
)
CONTENTS = {
    "content": [
        {"type": "text", "text": "hello", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": PIXEL, "mimeType": "image/png", "_meta": {"example.org/size": [1, 1]}},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "note:///linked", "name": "linked", "title": "Linked", "size": 3},
        {"type": "resource", "resource": {"uri": "note:///one", "mimeType": "text/plain", "text": "one"}},
        {"type": "resource", "resource": {"uri": "note:///blob", "blob": "AAEC"}},
    ],
    "structuredContent": {"deep": {"list": [1, 2.5, None, True, "ü"]}},
    "_meta": {"example.org/trace": {"id": "abc"}},
}


def tool(name: str, **more: Any) -> types.Tool:
    return types.Tool(name=name, description=f"The {name} tool.", input_schema={"type": "object"}, **more)


TOOLS = [
    tool(
        "contents",
        title="All contents",
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
        output_schema={"type": "object", "properties": {"deep": {"type": "object"}}},
        icons=[types.Icon(src="https://example.org/icon.png", mime_type="image/png", sizes=["48x48"])],
        _meta={"example.org/kind": "demo"},
    ),
    *map(tool, ("ask", "ask_twice", "sample", "roots", "progress", "log", "wait", "refuse", "gate", "touch")),
]


@dataclass
class Rich:
    """What the server does, and what it has seen, for tests that run in its process."""

    name: str = "rich"
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    at_gate: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    answers: list[Any] = field(default_factory=list)
    level: str = "warning"
    subscribed: list[str] = field(default_factory=list)
    listens: bool = False  # to those of 2026 who want to hear of changes

    def __post_init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.listening = ListenHandler(self.bus)

    async def call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        answers = {key: answer.model_dump() for key, answer in (params.input_responses or {}).items()}
        if ctx.protocol_version >= "2026" and params.name in ("ask", "ask_twice", "sample", "roots"):
            return _asked_modern(params, answers)
        return await getattr(self, f"_{params.name.removesuffix('_twice')}")(ctx, params)

    async def _contents(self, ctx: Any, params: Any) -> Any:
        return types.CallToolResult.model_validate(CONTENTS)

    async def _ask(self, ctx: Any, params: Any) -> Any:
        message = _message(params)
        names = []
        for _ in range(2 if params.name == "ask_twice" else 1):
            answer = await ctx.session.elicit_form(message, NAME_SCHEMA, related_request_id=ctx.request_id)
            self.answers.append(answer)
            names.append((answer.content or {}).get("name", answer.action))
        return _text(f"{self.name}: {message} {' '.join(map(str, names))}")

    async def _sample(self, ctx: Any, params: Any) -> Any:
        result = await _request(ctx, SAMPLING, types.CreateMessageResult)
        return _text(result.content.text)

    async def _roots(self, ctx: Any, params: Any) -> Any:
        result = await _request(ctx, types.ListRootsRequest(), types.ListRootsResult)
        return _text(str(result.roots[0].uri))

    async def _progress(self, ctx: Any, params: Any) -> Any:
        for step in (1, 2, 3):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return _text("done")

    async def _log(self, ctx: Any, params: Any) -> Any:
        allowed = set(ctx.session._allowed_log_levels)  # of 2026, this is what the request asks for
        if ctx.protocol_version < "2026" and self.level == "warning":
            allowed.discard("debug")
        for level in ("debug", "warning"):
            if level in allowed:
                data = {"from": self.name, "for": (params.arguments or {}).get("who", "")}
                logged = types.LoggingMessageNotificationParams(level=level, logger="rich", data=data)
                await ctx.session.send_notification(
                    types.LoggingMessageNotification(params=logged), related_request_id=ctx.request_id
                )
        return _text("logged")

    async def _wait(self, ctx: Any, params: Any) -> Any:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    async def _gate(self, ctx: Any, params: Any) -> Any:
        self.at_gate.set()
        await self.go_on.wait()
        return _text("through the gate")

    async def _refuse(self, ctx: Any, params: Any) -> Any:
        raise MCPError(-32099, "not today", {"because": ["rain", 7, None]})

    async def _touch(self, ctx: Any, params: Any) -> Any:
        if ctx.protocol_version >= "2026":
            await self.bus.publish(ResourceUpdated(f"{self.name}:///one"))
        else:
            await ctx.session.send_resource_updated(f"{self.name}:///one")
        return _text("touched")

    async def listen(self, ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        uris = params.notifications.resource_subscriptions or []
        self.subscribed += uris
        try:
            return await self.listening(ctx, params)
        finally:
            for uri in uris:
                self.subscribed.remove(uri)

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        shared = types.Resource(uri="note:///shared", name="shared")
        one = types.Resource(uri=f"{self.name}:///one", name="one", title="One", mime_type="text/plain", size=3)
        return types.ListResourcesResult(resources=[shared, one])

    async def list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template=f"{self.name}-note:///{{id}}", name="note")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri.endswith("missing"):
            raise MCPError(-32002, "Resource not found", {"uri": params.uri})
        text = f"{params.uri} of {self.name}"
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text, _meta={"a": 1})
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="whom", description="Whom to greet.", required=True)
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet", title="Greet", arguments=[argument])])

    async def get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = types.TextContent(type="text", text=f"Greet {(params.arguments or {}).get('whom')} from {self.name}.")
        return types.GetPromptResult(
            description="A greeting", messages=[types.PromptMessage(role="user", content=text)]
        )

    async def complete(self, ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        about = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        values = [f"{about} {params.argument.value}ob"]
        return types.CompleteResult(completion=types.Completion(values=values, total=1, has_more=False))

    async def subscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.subscribed.append(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.subscribed.remove(params.uri)
        return types.EmptyResult()

    async def set_level(self, ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.level = params.level
        return types.EmptyResult()


def make_server(rich: Rich | None = None) -> Server[Any]:
    rich = rich or Rich()
    server: Server[Any] = Server(
        rich.name,
        on_list_tools=rich.list_tools,
        on_call_tool=rich.call,
        on_list_resources=rich.list_resources,
        on_list_resource_templates=rich.list_templates,
        on_read_resource=rich.read,
        on_list_prompts=rich.list_prompts,
        on_get_prompt=rich.get_prompt,
        on_completion=rich.complete,
        on_subscribe_resource=rich.subscribe,
        on_unsubscribe_resource=rich.unsubscribe,
        on_subscriptions_listen=rich.listen if rich.listens else None,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, rich.set_level)
    return server


def _asked_modern(params: types.CallToolRequestParams, answers: dict[str, Any]) -> Any:
    """What is asked in the way of 2026: the answer to the call is the question, and the answers come with the next."""
    if params.name == "sample":
        if not answers:
            return types.InputRequiredResult(input_requests={"s": SAMPLING}, request_state="s")
        return _text(answers["s"]["content"]["text"])
    if params.name == "roots":
        if not answers:
            return types.InputRequiredResult(input_requests={"r": types.ListRootsRequest()}, request_state="r")
        return _text(str(answers["r"]["roots"][0]["uri"]))
    names = (params.request_state or "").split("|")[1:]
    if answers:
        given = answers["name"]
        names.append((given["content"] or {}).get("name", given["action"]))
    if len(names) == (2 if params.name == "ask_twice" else 1):
        return _text(f"{_message(params)} {' '.join(map(str, names))}")
    form = types.ElicitRequestFormParams(message=_message(params), requested_schema=NAME_SCHEMA)
    return types.InputRequiredResult(
        input_requests={"name": types.ElicitRequest(params=form)}, request_state="|".join(["state", *names])
    )


def _message(params: types.CallToolRequestParams) -> str:
    return str((params.arguments or {}).get("message", "What is your name?"))


async def _request(ctx: Any, request: Any, result_type: Any) -> Any:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, result_type, metadata=related)


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server = make_server(Rich(*sys.argv[1:]))
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
