"""What an agent searches for before its model is asked: ``anticipated.py FRAMEWORK``.

Prints the names of the tools that the session then has, the texts that were searched for, and whether a search held up
the event loop.
"""

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from story import book_room, pay_bill, send_mail

from toolsearch import PassThrough, Session, SessionOptions, ToolReference, ToolSearch

SAID = "Send an email message."
FRAMEWORK = sys.argv[1]


class Watched(ToolSearch):
    """Notes the sessions, the searches, and whether these run in the thread of an event loop."""

    opened: list[Session]
    searched: list[str]
    holds_up_a_loop = False

    def session(self, session_id: str, **options: Any) -> Session:
        self.opened.append(super().session(session_id, **options))
        return self.opened[-1]

    def search(self, query: str, **options: Any) -> list[ToolReference]:
        self.searched.append(query)
        self.holds_up_a_loop |= asyncio._get_running_loop() is not None
        return super().search(query, **options)


engine = Watched(
    [send_mail, book_room, pay_bill], encoder=None, options=SessionOptions(pass_through=PassThrough(max_tools=0))
)
engine.opened, engine.searched = [], []
model = import_module(f"models.{FRAMEWORK.partition('-')[0]}").scripted("Done.")


async def google_adk() -> None:
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from toolsearch.adapters.google_adk import ToolSearchToolset

    agent = LlmAgent(name="clerk", model=model, tools=[ToolSearchToolset(engine)])
    async with InMemoryRunner(agent=agent, app_name="office") as runner:
        await runner.session_service.create_session(app_name="office", user_id="ann", session_id="one")
        message = types.Content(role="user", parts=[types.Part(text=SAID)])
        async for _ in runner.run_async(user_id="ann", session_id="one", new_message=message):
            pass


async def pydantic_ai() -> None:
    from pydantic_ai import Agent

    from toolsearch.adapters.pydantic_ai import ToolSearchToolset

    await Agent(model, toolsets=[ToolSearchToolset(engine)]).run(SAID)


async def langchain(*after: Any) -> None:
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage

    from toolsearch.adapters.langchain import ToolSearchMiddleware

    agent = create_agent(model, middleware=[ToolSearchMiddleware(engine)])
    said = [*after] if after else [HumanMessage(SAID)]
    await agent.ainvoke({"messages": said}, {"configurable": {"thread_id": "a"}})


async def langchain_result() -> None:
    """The conversation begins with the result of another tool, in the words of a request."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call = {"name": "read_note", "args": {}, "id": "call_1"}
    await langchain(HumanMessage("Go on."), AIMessage("", tool_calls=[call]), ToolMessage(SAID, tool_call_id="call_1"))


async def openai_agents(said: Any = SAID) -> None:
    from agents import Agent, Runner

    from toolsearch.adapters.openai_agents import ToolSearchServer

    server = ToolSearchServer(lambda run: engine.session(run.context))
    await Runner.run(Agent("assistant", model=model, mcp_servers=[server]), said, context="a")


async def openai_agents_blocks() -> None:
    block = {"type": "input_text", "text": SAID}
    await openai_agents([{"role": "user", "content": "Hello."}, {"role": "user", "content": [block]}])


async def openai_agents_result() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "read_note", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": SAID}
    await openai_agents([{"role": "user", "content": "Go on."}, call, result])


async def llama_index() -> None:
    from llama_index.core.agent.workflow import FunctionAgent

    from toolsearch.adapters.llama_index import ToolSearchRetriever

    await FunctionAgent(llm=model, tool_retriever=ToolSearchRetriever(engine.session("a"))).run(SAID)


asyncio.run(globals()[FRAMEWORK.replace("-", "_")]())
print(json.dumps([engine.opened[-1].discovered, engine.searched, engine.holds_up_a_loop]))
