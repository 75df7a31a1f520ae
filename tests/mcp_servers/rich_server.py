"""An MCP server with all that a gateway may lose: contents of every kind, questions, progress, logs, prompts, resources.

Over stdio as a command, `python rich_server.py [NAME]`, or in the test's own process by `make_server`. It speaks both of
the protocol's eras, and asks in the way of whichever it is spoken to in.
"""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAME_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
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


@dataclass
class Rich:
    """What the server has seen, for tests that run in its process."""

    name: str = "rich"
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    answers: list[Any] = field(default_factory=list)
    metas: list[Any] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    subscribed: list[str] = field(default_factory=list)


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
    *(
        tool(name)
        for name in ("ask", "ask_twice", "sample", "roots", "progress", "log", "wait", "refuse", "gate", "touch")
    ),
]


def make_server(rich: Rich | None = None) -> Server[Any]:
    seen = rich or Rich()

    async def call(ctx: Any, params: types.CallToolRequestParams) -> Any:
        seen.metas.append(dict(ctx.meta or {}))
        is_modern = ctx.protocol_version >= "2026"
        answers = {key: answer.model_dump() for key, answer in (params.input_responses or {}).items()}
        match params.name:
            case "contents":
                return dict(CONTENTS)
            case "ask" | "ask_twice":
                message = str((params.arguments or {}).get("message", "What is your name?"))
                if is_modern:
                    return _asked_modern(params, answers, message)
                names = []
                for _ in range(2 if params.name == "ask_twice" else 1):
                    answer = await ctx.session.elicit_form(message, NAME_SCHEMA, related_request_id=ctx.request_id)
                    seen.answers.append(answer)
                    names.append((answer.content or {}).get("name", answer.action))
                return _text(f"{seen.name}: {message} {' '.join(map(str, names))}")
            case "sample":
                question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="2+2?"))
                request = types.CreateMessageRequest(
                    params=types.CreateMessageRequestParams(messages=[question], max_tokens=10)
                )
                if is_modern and not answers:
                    return types.InputRequiredResult(input_requests={"s": request}, request_state="sampling")
                if is_modern:
                    return _text(answers["s"]["content"]["text"])
                result = await _request(ctx, request, types.CreateMessageResult)
                return _text(result.content.text)
            case "roots":
                if is_modern and not answers:
                    return types.InputRequiredResult(input_requests={"r": types.ListRootsRequest()}, request_state="r")
                if is_modern:
                    return _text(str(answers["r"]["roots"][0]["uri"]))
                result = await _request(ctx, types.ListRootsRequest(), types.ListRootsResult)
                return _text(str(result.roots[0].uri))
            case "progress":
                for step in (1, 2, 3):
                    await ctx.session.report_progress(step, 3, f"step {step}")
                return _text("done")
            case "log":
                for level in ("debug", "warning"):
                    await _log(ctx, level, {"from": seen.name, "for": (params.arguments or {}).get("who", "")})
                return _text("logged")
            case "wait":
                seen.waiting.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    seen.cancelled.set()
            case "gate":
                seen.waiting.set()
                await seen.go_on.wait()
                return _text("through the gate")
            case "refuse":
                raise MCPError(-32099, "not today", {"because": ["rain", 7], "toolsearch/none": None})
            case "touch":
                await ctx.session.send_resource_updated("note:///one")
                return _text("touched")
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        shared = types.Resource(uri="note:///shared", name="shared")
        one = types.Resource(uri=f"{seen.name}:///one", name="one", title="One", mime_type="text/plain", size=3)
        return types.ListResourcesResult(resources=[shared, one])

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template=f"{seen.name}-note:///{{id}}", name="note")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        if params.uri.endswith("missing"):
            raise MCPError(-32002, "Resource not found", {"uri": params.uri})
        text = f"{params.uri} of {seen.name}"
        return {"contents": [{"uri": params.uri, "mimeType": "text/plain", "text": text, "_meta": {"a": 1}}]}

    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="whom", description="Whom to greet.", required=True)
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet", title="Greet", arguments=[argument])])

    async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
        text = f"Greet {(params.arguments or {}).get('whom')} from {seen.name}."
        return {"description": "A greeting", "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        about = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        values = [f"{about} {params.argument.value}ob"]
        return types.CompleteResult(completion=types.Completion(values=values, total=1, has_more=False))

    async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
        seen.subscribed.append(params.uri)
        return types.EmptyResult()

    async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
        seen.subscribed.remove(params.uri)
        return types.EmptyResult()

    async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        seen.levels.append(params.level)
        return types.EmptyResult()

    server: Server[Any] = Server(
        seen.name,
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


def _asked_modern(params: types.CallToolRequestParams, answers: dict[str, Any], message: str) -> Any:
    rounds = 2 if params.name == "ask_twice" else 1
    names = (params.request_state or "").split("|")[1:]
    if answers:
        given = answers["name"]
        names.append((given["content"] or {}).get("name", given["action"]))
    if len(names) == rounds:
        return _text(f"{message} {' '.join(map(str, names))}")
    form = types.ElicitRequestFormParams(message=message, requested_schema=NAME_SCHEMA)
    return types.InputRequiredResult(
        input_requests={"name": types.ElicitRequest(params=form)}, request_state="|".join(["state", *names])
    )


async def _request(ctx: Any, request: Any, result_type: Any) -> Any:
    from mcp.shared.message import ServerMessageMetadata  # noqa: PLC0415

    return await ctx.session.send_request(
        request, result_type, metadata=ServerMessageMetadata(related_request_id=ctx.request_id)
    )


async def _log(ctx: Any, level: Any, data: Any) -> None:
    if level not in ctx.session._allowed_log_levels:
        return
    params = types.LoggingMessageNotificationParams(level=level, logger="rich", data=data)
    await ctx.session.send_notification(
        types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
    )


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server = make_server(Rich(*sys.argv[1:]))
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
