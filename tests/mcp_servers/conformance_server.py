"""An MCP server over stdio with the tools, prompts and resources that the official conformance suite asks for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NOTHING = {"type": "object"}

Tool = Callable[[Any, dict[str, Any]], Awaitable[dict[str, Any]]]


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image() -> dict[str, Any]:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def resource(uri: str, mime_type: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


CONTENTS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}

DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}
USER = {
    "type": "object",
    "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
    "required": ["username", "email"],
}


async def log(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    for step in ("started", "goes on", "completed"):
        params = types.LoggingMessageNotificationParams(level="info", data=f"Tool execution {step}")
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
        )
    return {"content": [text("logged")]}


async def progress(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
    return {"content": [text("done")]}


async def fail(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    return {"isError": True, "content": [text("This tool intentionally returns an error for testing")]}


async def sample(ctx: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=arguments["prompt"]))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=100))
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    result = await ctx.session.send_request(request, types.CreateMessageResult, metadata=related)
    return {"content": [text(f"LLM response: {result.content.text}")]}


def eliciting(schema: dict[str, Any]) -> Tool:
    async def elicit(ctx: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        message = str(arguments.get("message", "Please fill this in."))
        answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        content = json.dumps(answer.content)
        return {"content": [text(f"Elicitation completed: action={answer.action}, content={content}")]}

    return elicit


def returning(content: list[dict[str, Any]]) -> Tool:
    async def answer(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
        return {"content": content}

    return answer


TOOLS: dict[str, Tool] = {
    **{name: returning(content) for name, content in CONTENTS.items()},
    "test_tool_with_logging": log,
    "test_tool_with_progress": progress,
    "test_error_handling": fail,
    "test_sampling": sample,
    "test_elicitation": eliciting(USER),
    "test_elicitation_sep1034_defaults": eliciting(DEFAULTS),
    "test_elicitation_sep1330_enums": eliciting(ENUMS),
    "json_schema_2020_12_tool": returning([text("fine")]),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}
RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}


def messages(name: str, given: dict[str, str]) -> list[dict[str, Any]]:
    match name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_image":
            said = [image(), text("Please analyze the image above.")]
        case _:
            said = [resource(given["resourceUri"], "text/plain", "Embedded resource content for testing.")]
    return [{"role": "user", "content": each} for each in said]


async def list_tools(ctx: Any, params: Any) -> dict[str, Any]:
    listed = [{"name": name, "description": f"{name}.", "inputSchema": SCHEMAS.get(name, NOTHING)} for name in TOOLS]
    return {"tools": listed}


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    return await TOOLS[params.name](ctx, params.arguments or {})


async def list_prompts(ctx: Any, params: Any) -> dict[str, Any]:
    listed = [
        {"name": name, "description": f"{name}.", "arguments": [{"name": each, "required": True} for each in arguments]}
        for name, arguments in PROMPTS.items()
    ]
    return {"prompts": listed}


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> dict[str, Any]:
    return {"messages": messages(params.name, params.arguments or {})}


async def list_resources(ctx: Any, params: Any) -> dict[str, Any]:
    listed = [
        {"uri": uri, "name": uri.removeprefix("test://"), "description": f"{uri}.", "mimeType": content["mimeType"]}
        for uri, content in RESOURCES.items()
    ]
    return {"resources": listed}


async def list_templates(ctx: Any, params: Any) -> dict[str, Any]:
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [template]}


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> dict[str, Any]:
    uri = str(params.uri)
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if not uri.startswith("test://template/"):
        raise MCPError(-32002, "Resource not found", {"uri": uri})
    filled = uri.split("/")[3]
    data = json.dumps({"id": filled, "templateTest": True, "data": f"Data for ID: {filled}"})
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": data}]}


async def complete(ctx: Any, params: Any) -> dict[str, Any]:
    return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}


async def accept(ctx: Any, params: Any) -> dict[str, Any]:
    return {}


async def main() -> None:
    handlers: dict[str, Any] = {
        "on_list_tools": list_tools,
        "on_call_tool": call_tool,
        "on_list_prompts": list_prompts,
        "on_get_prompt": get_prompt,
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_subscribe_resource": accept,
        "on_unsubscribe_resource": accept,
        "on_completion": complete,
    }
    server: Server[Any] = Server("conformance", **handlers)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, accept)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
