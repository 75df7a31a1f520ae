"""The official SDK of OpenAI, in the loops that its documentation shows: Chat Completions and Responses."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI
from task import Task, task

MODEL = "gpt-5.5"


async def chat(client: AsyncOpenAI, asked: Task) -> None:
    tools: list[Any] = [{"type": "function", "function": _described(tool)} for tool in asked.tools]
    messages: list[Any] = []
    for prompt in asked.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            request: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": tools, "reasoning_effort": "none"}
            if asked.is_streamed:
                async with client.chat.completions.stream(**request) as stream:
                    message = (await stream.get_final_completion()).choices[0].message
            else:
                message = (await client.chat.completions.create(**request)).choices[0].message
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}) if asked.is_streamed else message)
            for call in message.tool_calls or []:
                result = asked.run(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            if not message.tool_calls:
                break
        asked.answers.append(message.content or "")


async def responses(client: AsyncOpenAI, asked: Task) -> None:
    tools: list[Any] = [{"type": "function", "strict": False, **_described(tool)} for tool in asked.tools]
    items: list[Any] = []
    for prompt in asked.prompts:
        items.append({"role": "user", "content": prompt})
        while True:
            request: dict[str, Any] = {"model": MODEL, "input": items, "tools": tools, "store": False}
            if asked.is_streamed:
                async with client.responses.stream(**request) as stream:
                    response = await stream.get_final_response()
            else:
                response = await client.responses.create(**request)
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            for call in calls:
                result = asked.run(call.name, json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
            if not calls:
                break
        asked.answers.append(response.output_text)


def _described(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["inputSchema"]}


asked = task()
client = AsyncOpenAI(api_key="k", base_url=f"{asked.url}/v1", max_retries=0)
asyncio.run((chat if asked.wire == "chat" else responses)(client, asked))
asked.tell()
