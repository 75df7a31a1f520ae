"""The official SDK of Anthropic, in the loop that its documentation shows."""

from typing import Any

from anthropic import Anthropic
from task import task

MODEL = "claude-sonnet-5"
asked = task()
client = Anthropic(api_key="k", base_url=asked.url, max_retries=0)
tools: list[Any] = [
    {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
    for tool in asked.tools
]
messages: list[Any] = []


def answer() -> Any:
    request: dict[str, Any] = {"model": MODEL, "max_tokens": 1024, "tools": tools, "messages": messages}
    if not asked.is_streamed:
        return client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        return stream.get_final_message()


for prompt in asked.prompts:
    messages.append({"role": "user", "content": prompt})
    while True:
        message = answer()
        messages.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": asked.run(block.name, block.input)}
            for block in message.content
            if block.type == "tool_use"
        ]
        if not results:
            break
        messages.append({"role": "user", "content": results})
    asked.answers.append("".join(block.text for block in message.content if block.type == "text"))
asked.tell()
