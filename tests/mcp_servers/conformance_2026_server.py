"""As conformance_server, for the suite's scenarios of 2026-07-28: what is asked of a user is a result there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import conformance_server as older
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged

bus = InMemorySubscriptionBus()

Handler = Callable[[Any, Any], Awaitable[dict[str, Any]]]
Questions = dict[str, dict[str, Any]]


def form(message: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": [*properties],
    }
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(question: str) -> dict[str, Any]:
    message = {"role": "user", "content": older.text(question)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


NAME = form("What is your name?", name="string")
CONFIRM = form("Please confirm", ok="boolean")
ROOTS = {"method": "roots/list", "params": {}}

ROUNDS: dict[str, list[Questions]] = {
    "test_streaming_elicitation": [{"user_name": NAME}],
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": sampling("What is the capital of France?")}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sampling("Greet me."), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": NAME},
        {"step2": form("What is your favourite colour?", color="string")},
    ],
    "test_input_required_result_capabilities": [{"user_name": NAME, "question": sampling("Well?")}],
    "test_input_required_result_prompt": [{"user_context": NAME}],
}
PROMPT = "test_input_required_result_prompt"
older.PROMPTS[PROMPT] = ()


def asked(ctx: Any, name: str, params: Any) -> dict[str, Any] | None:
    """The next questions of a tool or prompt, or those that were not answered; None where all have been."""
    rounds = ROUNDS[name]
    answers = params.input_responses or {}
    at = int(params.request_state or bool(answers))  # how many rounds have been asked
    answered = at > 0 and rounds[at - 1].keys() <= answers.keys()
    if answered and at == len(rounds):
        return None
    at = at if answered else max(at - 1, 0)
    able = ctx.session.client_capabilities
    can = {"sampling/createMessage": able.sampling, "elicitation/create": able.elicitation, "roots/list": able.roots}
    questions = {key: each for key, each in rounds[at].items() if can[each["method"]] is not None}
    return {"resultType": "input_required", "inputRequests": questions, "requestState": str(at + 1)}


async def needs_sampling(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    if ctx.session.client_capabilities.sampling is None:
        raise MCPError(-32021, "The client cannot sample", {"requiredCapabilities": {"sampling": {}}})
    return {"content": [older.text("It can.")]}


async def change_tools(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    if older.TOOLS.pop("test_extra", None) is None:
        older.TOOLS["test_extra"] = older.returning([])
    await bus.publish(ToolsListChanged())
    return {"content": [older.text("changed")]}


async def change_prompts(ctx: Any, _: dict[str, Any]) -> dict[str, Any]:
    if older.PROMPTS.pop("test_extra", None) is None:
        older.PROMPTS["test_extra"] = ()
    await bus.publish(PromptsListChanged())
    return {"content": [older.text("changed")]}


older.TOOLS |= {
    "test_missing_capability": needs_sampling,
    "test_logging_tool": older.returning([older.text("nothing to log")]),
    "test_trigger_tool_change": change_tools,
    "test_trigger_prompt_change": change_prompts,
    "test_header": older.returning([older.text("Thank you.")]),
    **{name: older.returning([older.text("state-ok")]) for name in ROUNDS if name != PROMPT},
}
older.SCHEMAS["test_header"] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    questions = asked(ctx, params.name, params) if params.name in ROUNDS else None
    return questions or await older.call_tool(ctx, params)


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> dict[str, Any]:
    if params.name != PROMPT:
        return await older.get_prompt(ctx, params)
    said = {"messages": [{"role": "user", "content": older.text("Go on.")}]}
    return asked(ctx, PROMPT, params) or said


def whole(handler: Handler, *, is_kept: bool = False) -> Handler:
    """What *handler* gives, with what results of 2026 have to have."""
    around = {"resultType": "complete", **({"ttlMs": 0, "cacheScope": "private"} if is_kept else {})}

    async def handle(ctx: Any, params: Any) -> dict[str, Any]:
        return {**around, **await handler(ctx, params)}

    return handle


async def main() -> None:
    handlers: dict[str, Any] = {
        "on_list_tools": whole(older.list_tools, is_kept=True),
        "on_call_tool": whole(call_tool),
        "on_list_prompts": whole(older.list_prompts, is_kept=True),
        "on_get_prompt": whole(get_prompt),
        "on_list_resources": whole(older.list_resources, is_kept=True),
        "on_list_resource_templates": whole(older.list_templates, is_kept=True),
        "on_read_resource": whole(older.read_resource, is_kept=True),
        "on_completion": whole(older.complete),
        "on_subscriptions_listen": ListenHandler(bus),
    }
    server: Server[Any] = Server("conformance", **handlers)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
