"""A tool that draws: ``pictures.py FRAMEWORK`` prints what the model is sent of the picture, and the tool's context.

The catalog is so small that it is shown whole.
"""

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from toolsearch import ToolContext, ToolSearch

PNG = b"\x89PNG\r\n\x1a\n"


contexts: list[list[str]] = []


def draw(context: ToolContext) -> bytes:
    """Draw a picture."""
    contexts.append(sorted(context))
    return PNG


FRAMEWORK = sys.argv[1]
engine = ToolSearch([draw], encoder=None)
model = import_module(f"models.{FRAMEWORK}").scripted([("draw", {})], "Done.")


async def pydantic_ai() -> Any:
    from pydantic_ai import Agent

    from toolsearch.adapters.pydantic_ai import ToolSearchToolset

    run = await Agent(model, toolsets=[ToolSearchToolset(engine)]).run("Draw.")
    (part,) = run.all_messages()[2].parts
    return [[each.media_type, each.base64] for each in part.content]


async def langchain() -> Any:
    from langchain.agents import create_agent

    from toolsearch.adapters.langchain import ToolSearchMiddleware

    agent = create_agent(model, middleware=[ToolSearchMiddleware(engine)])
    said = [{"role": "user", "content": "Draw."}]
    run = await agent.ainvoke({"messages": said}, {"configurable": {"thread_id": "a"}})
    return run["messages"][2].content


async def openai_agents() -> Any:
    from agents import Agent, Runner

    from toolsearch.adapters.openai_agents import ToolSearchServer

    server = ToolSearchServer(lambda run: engine.session(run.context))
    run = await Runner.run(Agent("assistant", model=model, mcp_servers=[server]), "Draw.", context="a")
    return run.to_input_list()[2]["output"]


async def llama_index() -> Any:
    from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult

    from toolsearch.adapters.llama_index import ToolSearchRetriever

    run = FunctionAgent(llm=model, tool_retriever=ToolSearchRetriever(engine.session("a"))).run("Draw.")
    outputs = [event.tool_output async for event in run.stream_events() if isinstance(event, ToolCallResult)]
    await run
    return [block.model_dump(mode="json", include={"text", "image", "image_mimetype"}) for block in outputs[0].blocks]


print(json.dumps([asyncio.run(globals()[FRAMEWORK]()), contexts]))
