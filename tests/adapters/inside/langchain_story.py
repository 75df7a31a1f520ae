"""LangChain with a chat model of the test's own: three threads at the same time, by one agent."""

import asyncio
import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from story import Stories, Story, engine_of_500, session_of

from toolsearch import Session
from toolsearch.adapters.langchain import ToolSearchMiddleware

engine, stories = engine_of_500(), Stories()


class Model(GenericFakeChatModel):
    """Says what the story says to the tools that it was bound to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools, **options)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        await asyncio.sleep(0)  # the others go on
        story = stories.told_to(messages[0].text)
        said = story.reply([tool["function"]["name"] for tool in options["tools"]])
        text, calls = (said, []) if isinstance(said, str) else ("", said)
        number = len(story.listed)
        asked = [
            {"name": name, "args": arguments, "id": f"call_{number}_{place}"}
            for place, (name, arguments) in enumerate(calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=asked))])


def session(config: RunnableConfig) -> Session:
    return session_of(engine, config["configurable"]["thread_id"])


agent = create_agent(
    Model(messages=iter([])), middleware=[ToolSearchMiddleware(engine, session)], checkpointer=InMemorySaver()
)


async def converse(story: Story) -> None:
    messages: list[BaseMessage] = []
    for question in story.questions:
        config: RunnableConfig = {"configurable": {"thread_id": story.who}}
        messages = (await agent.ainvoke({"messages": [HumanMessage(question)]}, config))["messages"]
        story.answers.append(messages[-1].text)
    story.results += [(each.text, each.status == "error") for each in messages if isinstance(each, ToolMessage)]


async def main() -> None:
    await asyncio.gather(*map(converse, stories.values()))
    print(json.dumps(stories.record))


asyncio.run(main())
