"""LlamaIndex with its MockFunctionCallingLLM: three conversations at the same time, an agent each."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import Context
from story import Stories, Story, engine_of_500, session_of

from toolsearch.adapters.llama_index import ToolSearchRetriever

engine, stories = engine_of_500(), Stories()


def model(messages: Sequence[ChatMessage], tools: Sequence[Any] = (), **_: Any) -> ChatMessage:
    story = stories.told_to(str(messages[0].content))
    said = story.reply([tool.metadata.name for tool in tools])
    if isinstance(said, str):
        return ChatMessage(role="assistant", blocks=[TextBlock(text=said)])
    calls = [
        ToolCallBlock(tool_name=name, tool_kwargs=arguments, tool_call_id=f"call_{len(story.listed)}_{place}")
        for place, (name, arguments) in enumerate(said)
    ]
    return ChatMessage(role="assistant", blocks=calls)


async def converse(story: Story) -> None:
    retriever = ToolSearchRetriever(session_of(engine, story.who))
    agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=model), tool_retriever=retriever)
    context = Context(agent)
    for question in story.questions:
        run = agent.run(question, ctx=context)
        async for event in run.stream_events():
            if isinstance(event, ToolCallResult):
                story.results.append((event.tool_output.content, event.tool_output.is_error))
        story.answers.append(str(await run))


async def main() -> None:
    await asyncio.gather(*map(converse, stories.values()))
    print(json.dumps(stories.record))


asyncio.run(main())
