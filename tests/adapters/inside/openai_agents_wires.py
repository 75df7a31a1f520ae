"""Ada's story on the wire: ``openai_agents_wires.py URL MODEL``. The server is the model."""

import asyncio
import json
import sys

from agents import Agent, OpenAIResponsesModel, Runner, TResponseInputItem
from openai import AsyncOpenAI
from story import Story, engine_of_500, session_of

from toolsearch.adapters.openai_agents import ToolSearchServer

URL, MODEL = sys.argv[1:]


async def main() -> None:
    session = session_of(engine_of_500(), "ada")
    model = OpenAIResponsesModel(MODEL, AsyncOpenAI(api_key="k", base_url=f"{URL}/v1"))
    agent = Agent("assistant", model=model, mcp_servers=[ToolSearchServer(lambda _: session)])
    answers, history = [], list[TResponseInputItem]()
    for question in Story("ada").questions:
        run = await Runner.run(agent, [*history, {"role": "user", "content": question}])
        history = run.to_input_list()
        answers.append(run.final_output)
    print(json.dumps(answers))


asyncio.run(main())
