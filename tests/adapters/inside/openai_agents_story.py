"""The OpenAI Agents SDK with its ScriptedModel: three conversations at the same time, by one agent."""

import asyncio
import json
from typing import Any

from agents import Agent, RunContextWrapper, Runner, TResponseInputItem
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from story import Stories, Story, engine_of_500, session_of

from toolsearch import Session
from toolsearch.adapters.openai_agents import ToolSearchServer

engine, stories = engine_of_500(), Stories()


def session(run: RunContextWrapper[str]) -> Session:
    return session_of(engine, run.context)


async def model(call: ModelCall) -> list[Any]:
    await asyncio.sleep(0)  # the others go on
    story = stories.told_to(call.input[0]["content"])
    said = story.reply([tool.name for tool in call.tools])
    if isinstance(said, str):
        return [assistant_message(said)]
    number = len(story.listed)
    return [
        function_call(name, arguments, call_id=f"call_{number}_{place}") for place, (name, arguments) in enumerate(said)
    ]


scripted = ScriptedModel([ModelStep.respond(model)] * sum(story.requests for story in stories.values()))
agent = Agent("assistant", model=scripted, mcp_servers=[ToolSearchServer(session)])


async def converse(story: Story) -> None:
    history: list[TResponseInputItem] = []
    for question in story.questions:
        asked: TResponseInputItem = {"role": "user", "content": question}
        run = await Runner.run(agent, [*history, asked], context=story.who)
        history = run.to_input_list()
        story.answers.append(run.final_output)
    outputs = [item["output"] for item in history if item.get("type") == "function_call_output"]
    story.results += [(output[0]["text"], False) for output in outputs]  # which hold no mark of a failure


async def main() -> None:
    await asyncio.gather(*map(converse, stories.values()))
    print(json.dumps(stories.record))


asyncio.run(main())
