"""LangChain's agent with the models of its two integrations."""

import asyncio

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from task import Task, task


def model_of(asked: Task) -> BaseChatModel:
    if asked.wire == "messages":
        return ChatAnthropic(model="claude-sonnet-5", api_key="k", base_url=asked.url, streaming=asked.is_streamed)
    is_responses = asked.wire == "responses"
    return ChatOpenAI(
        model="gpt-5.5",
        api_key="k",
        base_url=f"{asked.url}/v1",
        streaming=asked.is_streamed,
        use_responses_api=is_responses,
        **(
            {"include": ["reasoning.encrypted_content"], "store": False}
            if is_responses
            else {"reasoning_effort": "none"}
        ),
    )


async def converse(asked: Task) -> None:
    tools = [
        StructuredTool(
            name=tool["name"],
            description=tool.get("description") or tool["name"],
            args_schema=tool["inputSchema"],
            coroutine=asked.runner(tool["name"]),
        )
        for tool in asked.tools
    ]
    agent = create_agent(model_of(asked), tools, checkpointer=InMemorySaver())
    for prompt in asked.prompts:
        run = await agent.ainvoke({"messages": [("user", prompt)]}, {"configurable": {"thread_id": "one"}})
        asked.answers.append(run["messages"][-1].text)


asked = task()
asyncio.run(converse(asked))
asked.tell()
