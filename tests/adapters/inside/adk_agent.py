"""Two users of an ADK agent at once, whose model follows their wishes: by default, for a Claude and with a fixed list.

Prints, of each user, the tools in each request and what the tools answered, and which calls the hook was asked about.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from toolbox import WISHES, Wish, tools

from toolsearch import Allow, ToolCallingManager, ToolSearch
from toolsearch.adapters.google_adk import ToolSearchToolset


class Model(BaseLlm):
    """Searches for what the user wants, calls it, and says that it is done."""

    listed: dict[str, list[list[str]]]
    told: dict[str, list[Any]]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(0)  # lets the other user's request come between
        parts = [part for content in llm_request.contents for part in content.parts]
        said = [part.text for content in llm_request.contents if content.role == "user" for part in content.parts]
        said = [text for text in said if text]
        user = next(user for user, wishes in WISHES.items() if wishes[0].said == said[0])
        wish = WISHES[user][len(said) - 1]
        listed = [each.name for each in llm_request.config.tools[0].function_declarations]
        self.listed[user].append(listed)
        answer = parts[-1].function_response
        if answer is None:
            yield _calls("toolSearchTool", {"queries": [wish.query]})
        elif answer.name != "toolSearchTool":
            self.told[user].append(answer.response)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="That is all.")]))
        elif wish.name in listed:
            yield _calls(wish.name, {"id": wish.id})
        else:
            yield _calls("callTool", {"name": wish.name, "arguments": {"id": wish.id}})


def _calls(name: str, arguments: dict[str, Any]) -> LlmResponse:
    called = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
    return LlmResponse(content=types.Content(role="model", parts=[called]))


async def talk(runner: InMemoryRunner, user: str, wishes: Sequence[Wish]) -> None:
    await runner.session_service.create_session(app_name="office", user_id=user, session_id="one")
    for wish in wishes:
        message = types.Content(role="user", parts=[types.Part(text=wish.said)])
        async for _ in runner.run_async(user_id=user, session_id="one", new_message=message):
            pass


async def play(name: str, exposure: Any = None) -> dict[str, Any]:
    asked: list[str] = []
    manager = ToolCallingManager(before=[lambda call, *_: asked.append(call.name) or Allow()])
    model = Model(model=name, listed={user: [] for user in WISHES}, told={user: [] for user in WISHES})
    with ToolSearch(tools(), manager=manager) as engine:
        agent = LlmAgent(name="clerk", model=model, tools=[ToolSearchToolset(engine, exposure=exposure)])
        async with InMemoryRunner(agent=agent, app_name="office") as runner, asyncio.TaskGroup() as group:
            for user, wishes in WISHES.items():
                group.create_task(talk(runner, user, wishes))
    return {"listed": model.listed, "told": model.told, "asked": sorted(asked)}


PLAYS = {"by default": ("scripted",), "for a Claude": ("claude-opus-4-8",), "as asked": ("scripted", "fixed")}
print(json.dumps({way: asyncio.run(play(*how)) for way, how in PLAYS.items()}))
