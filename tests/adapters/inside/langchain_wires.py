"""Ada's story over wires: ``langchain_wires.py URL PROVIDER:MODEL...``. The server is the model."""

import json
import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from story import Story, engine_of_500

from toolsearch.adapters.langchain import ToolSearchMiddleware

URL = sys.argv[1]


def model_of(provider: str, name: str) -> BaseChatModel:
    if provider == "anthropic":
        return ChatAnthropic(model=name, api_key="k", base_url=URL)
    return ChatOpenAI(model=name, api_key="k", base_url=f"{URL}/v1")


def converse(provider: str, name: str) -> list[str]:
    engine = engine_of_500()
    engine.catalog.remove("pay_bill")  # what the session would otherwise be denied
    agent = create_agent(
        model_of(provider, name), middleware=[ToolSearchMiddleware(engine)], checkpointer=InMemorySaver()
    )
    config: RunnableConfig = {"configurable": {"thread_id": "ada"}}
    runs = [agent.invoke({"messages": [HumanMessage(question)]}, config) for question in Story("ada").questions]
    return [run["messages"][-1].text for run in runs]


print(json.dumps([converse(*way.split(":")) for way in sys.argv[2:]]))
