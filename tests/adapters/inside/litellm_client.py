"""Two users at once of a program that asks a model through LiteLLM, each time with all of its 500 tools.

URL says where the model is. Prints what the tools answered, by the way in which LiteLLM is asked and by user, and then
which tools are left in requests of other kinds.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import litellm
from toolbox import ANN, WISHES, tools

from toolsearch import AttachedTools, ToolCallingManager, as_tools
from toolsearch.adapters.litellm import ToolSearchCallback
from toolsearch.wire import parse_tool_calls, render_results, render_tools

logging.disable()  # the manager logs what a tool raises

URL = sys.argv[1]
TOOLS = as_tools(*tools())
DEFINITIONS = [tool.definition for tool in TOOLS]
CHAT, MESSAGES = render_tools(DEFINITIONS, "openai"), render_tools(DEFINITIONS, "anthropic")
RESPONSES = render_tools(DEFINITIONS, "openai-responses")

callback = ToolSearchCallback(limit=3, pins=["audit_firewall"])
litellm.callbacks = [callback]
manager = ToolCallingManager()
OPENAI = {"model": "openai/gpt-5", "api_key": "k", "api_base": f"{URL}/v1"}


async def chat(history: list[Any]) -> tuple[Any, list[Any]]:
    reply = await litellm.acompletion(messages=history, tools=CHAT, **OPENAI)
    return reply, [reply.choices[0].message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)]


async def messages(history: list[Any]) -> tuple[Any, list[Any]]:
    to = {"model": "anthropic/claude-haiku-4-5", "api_key": "k", "api_base": URL}
    reply = await litellm.anthropic.messages.acreate(messages=history, tools=MESSAGES, max_tokens=1_000, **to)
    return reply, [{"role": "assistant", "content": reply["content"]}]


async def responses(items: list[Any]) -> tuple[Any, list[Any]]:
    reply = await litellm.aresponses(input=items, tools=RESPONSES, store=False, **OPENAI)
    return reply, [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in reply.output]


async def talk(user: str, ask: Callable[[list[Any]], Any]) -> list[str]:
    history: list[Any] = []
    told: list[str] = []
    for wish in WISHES[user]:
        history.append({"role": "user", "content": wish.said})
        while True:
            reply, said = await ask(history)
            history += said
            wire_format, calls = parse_tool_calls(reply)
            if not calls:
                break
            results = await manager.execute(calls, AttachedTools(TOOLS))
            told += [result.text for result in results]
            history += render_results(results, wire_format)
    return told


async def left(listed: list[Any], **request: Any) -> list[Any]:
    """The names of the tools that are left, or their types; [] where the request stays as it is."""
    changed = await callback.async_pre_call_deployment_hook({"tools": listed, **request}, None)
    entries = listed if changed is None else changed["tools"]
    return (
        [] if entries == listed else [entry.get("function", entry).get("name", entry.get("type")) for entry in entries]
    )


async def main() -> None:
    told = {}
    for ask in (chat, messages, responses):
        ann, bob = await asyncio.gather(talk("ann", ask), talk("bob", ask))
        told[ask.__name__] = {"ann": ann, "bob": bob}
    asked = [{"role": "user", "content": ANN[0].said}]
    marked = [*MESSAGES[:-1], {**MESSAGES[-1], "cache_control": {"type": "ephemeral"}}]
    others = {
        "a provider's tool": await left(
            [{"type": "web_search_20250305", "name": "web_search"}, *MESSAGES], messages=asked
        ),
        "chosen": await left(
            CHAT, messages=asked, tool_choice={"type": "function", "function": {"name": "print_exam"}}
        ),
        "found nothing": await left(CHAT, messages=[{"role": "user", "content": "zzyzx"}]),
        "few": await left(CHAT[:3], messages=asked),
        "deferred by the client": await left([{**each, "defer_loading": True} for each in MESSAGES], messages=asked),
        "kept by the provider": await left(RESPONSES, input=ANN[1].said, previous_response_id="resp_1"),
        "a pattern": await left(CHAT, messages=[*asked, {"role": "user", "content": "/(/ is no pattern"}]),
    }
    changed = await callback.async_pre_call_deployment_hook({"tools": marked, "messages": asked}, None)
    marks = ["cache_control" in entry for entry in changed["tools"]]
    print(json.dumps({"told": told, "others": others, "marks": marks}))


asyncio.run(main())
