"""Ann of the office with models whose list of tools stays: ``litellm_stays.py URL``. The server is the model, and the
providers' own address as far as LiteLLM knows. Prints what the tools answered, by the way in which LiteLLM is asked.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable
from itertools import cycle
from typing import Any

URL = sys.argv[1]
os.environ |= {"ANTHROPIC_API_BASE": URL, "OPENAI_API_BASE": f"{URL}/v1", "OPENAI_BASE_URL": f"{URL}/v1"}

import litellm  # noqa: E402  it reads where the providers are
from toolbox import ANN, tools  # noqa: E402

from toolsearch import AttachedTools, ToolCallingManager, as_tools  # noqa: E402
from toolsearch.adapters.litellm import ToolSearchCallback  # noqa: E402
from toolsearch.wire import parse_tool_calls, render_results, render_tools  # noqa: E402

logging.disable()

TOOLS = as_tools(*tools())
DEFINITIONS = [tool.definition for tool in TOOLS]
MESSAGES = "anthropic_messages"
CLAUDE, GPT = {"model": "anthropic/claude-haiku-5-5", "api_key": "k"}, {"model": "openai/gpt-5.6", "api_key": "k"}

callback = ToolSearchCallback(limit=3, pins=["audit_firewall"])
litellm.callbacks = [callback]
manager = ToolCallingManager()


async def messages(history: list[Any]) -> tuple[Any, list[Any]]:
    given = render_tools(DEFINITIONS, "anthropic")
    reply = await litellm.anthropic.messages.acreate(messages=history, tools=given, max_tokens=1_000, **CLAUDE)
    return reply, [{"role": "assistant", "content": reply["content"]}]


async def chat(history: list[Any]) -> tuple[Any, list[Any]]:
    reply = await litellm.acompletion(messages=history, tools=render_tools(DEFINITIONS, "openai"), **CLAUDE)
    kept = {"role", "content", "tool_calls", "thinking_blocks"}
    return reply, [reply.choices[0].message.model_dump(include=kept, exclude_none=True)]


async def responses(items: list[Any]) -> tuple[Any, list[Any]]:
    given = render_tools(DEFINITIONS, "openai-responses")
    reply = await litellm.aresponses(input=items, tools=given, store=False, **GPT)
    return reply, [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in reply.output]


async def talk(ask: Callable[[list[Any]], Any]) -> list[str]:
    history: list[Any] = []
    told: list[str] = []
    for wish in ANN:
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


async def left(said: list[str], model: str = CLAUDE["model"], call_type: str = MESSAGES, **request: Any) -> list[str]:
    """The names of the tools that are left in a request; [] where it stays as it is."""
    asked = [{"role": role, "content": text} for text, role in zip(said, cycle(["user", "assistant"]))]
    given = {"model": model, "tools": render_tools(DEFINITIONS, "anthropic"), "messages": asked, **request}
    changed = await callback.async_pre_call_deployment_hook(given, call_type)
    return [] if changed == given else [tool["name"] for tool in changed["tools"]]


async def main() -> None:
    talks = {ask.__name__: await talk(ask) for ask in (messages, chat, responses)}
    ann, then = ANN[0].said, ANN[1].said
    others = {
        "found later": await left(["zzyzx", "What?", ann]),
        "chosen": await left([ann], tool_choice={"type": "tool", "name": "print_exam"}),
        "behind another address": await left([ann], api_base=URL),
        "in a cloud": await left([ann], "bedrock/anthropic.claude-fable-5-1-v1:0", "acompletion"),
        "thinking that is not bound": await left([ann, "Done.", then], "anthropic/claude-haiku-4-5", "acompletion"),
        "a stranger's model": await left([ann, "Done.", then], "nobody-knows", "acompletion"),
    }
    print(json.dumps({"talks": talks, "others": others}))


asyncio.run(main())
