"""An agent of pydantic-ai with its models of OpenAI and Anthropic."""

import asyncio
from collections.abc import AsyncIterable

from pydantic_ai import Agent, AgentStreamEvent, ModelMessage, RunContext, Tool
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from task import Task, task


def model_of(asked: Task) -> Model:
    if asked.wire == "messages":
        return AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(api_key="k", base_url=asked.url))
    kind = OpenAIResponsesModel if asked.wire == "responses" else OpenAIChatModel
    return kind("gpt-4.1", provider=OpenAIProvider(api_key="k", base_url=f"{asked.url}/v1"))


async def _read_on(_: RunContext, events: AsyncIterable[AgentStreamEvent]) -> None:
    async for _event in events:
        pass


async def converse(asked: Task) -> None:
    tools = [
        Tool.from_schema(asked.runner(tool["name"]), tool["name"], tool.get("description", ""), tool["inputSchema"])
        for tool in asked.tools
    ]
    agent = Agent(model_of(asked), tools=tools)
    history: list[ModelMessage] = []
    for prompt in asked.prompts:
        handler = _read_on if asked.is_streamed else None  # run_stream would end at the first text
        run = await agent.run(prompt, message_history=history, event_stream_handler=handler)
        asked.answers.append(run.output)
        history = run.all_messages()


asked = task()
asyncio.run(converse(asked))
asked.tell()
