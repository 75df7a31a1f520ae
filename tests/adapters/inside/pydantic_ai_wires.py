"""Ada's story over wires: ``pydantic_ai_wires.py URL PROVIDER:MODEL[:deferred]...``. The server is the model."""

import asyncio
import json
import sys

from pydantic_ai import Agent, ModelMessage
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from story import Story, engine_of_500

from toolsearch.adapters.pydantic_ai import ToolSearchToolset, search_strategy

URL = sys.argv[1]


def model_of(provider: str, name: str) -> Model:
    if provider == "anthropic":
        return AnthropicModel(name, provider=AnthropicProvider(api_key="k", base_url=URL))
    kind = OpenAIResponsesModel if provider == "responses" else OpenAIChatModel
    return kind(name, provider=OpenAIProvider(api_key="k", base_url=f"{URL}/v1"))


async def converse(provider: str, name: str, deferred: str = "") -> list[str]:
    engine = engine_of_500()
    engine.catalog.remove("pay_bill")  # what the session would otherwise be denied
    toolset = ToolSearchToolset(engine, deferred=bool(deferred))
    searching = [ToolSearch(strategy=search_strategy)] if deferred else []
    agent = Agent(model_of(provider, name), toolsets=[toolset], capabilities=searching)
    answers, history = [], list[ModelMessage]()
    for question in Story("ada").questions:
        run = await agent.run(question, message_history=history)
        history = run.all_messages()
        answers.append(run.output)
    return answers


async def main() -> None:
    print(json.dumps([await converse(*way.split(":")) for way in sys.argv[2:]]))


asyncio.run(main())
