"""pydantic-ai with its FunctionModel: three conversations at the same time, by one agent."""

import asyncio
import json

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from story import Stories, Story, engine_of_500, session_of

from toolsearch import Session
from toolsearch.adapters.pydantic_ai import ToolSearchToolset

engine, stories = engine_of_500(), Stories()


def session(ctx: RunContext) -> Session:
    return session_of(engine, str(ctx.conversation_id))


async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await asyncio.sleep(0)  # the others go on
    (question,) = [part.content for part in messages[0].parts if isinstance(part, UserPromptPart)]
    said = stories.told_to(str(question)).reply([tool.name for tool in info.function_tools])
    if isinstance(said, str):
        return ModelResponse(parts=[TextPart(said)])
    return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in said])


agent = Agent(FunctionModel(model), toolsets=[ToolSearchToolset(engine, session)])


async def converse(story: Story) -> None:
    history: list[ModelMessage] = []
    for question in story.questions:
        run = await agent.run(question, message_history=history, conversation_id=story.who)
        history = run.all_messages()
        story.answers.append(run.output)
    parts = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
    story.results += [(str(part.content), part.outcome == "failed") for part in parts]


async def main() -> None:
    await asyncio.gather(*map(converse, stories.values()))
    print(json.dumps(stories.record))


asyncio.run(main())
