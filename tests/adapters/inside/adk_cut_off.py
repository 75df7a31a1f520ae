"""An ADK agent whose model ends a reply early: ``adk_cut_off.py REASON...``. Prints what each call in it came to."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from toolbox import tools

from toolsearch import ToolSearch
from toolsearch.adapters.google_adk import ToolSearchToolset


class Model(BaseLlm):
    model: str = "scripted"
    reason: str
    told: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = llm_request.contents[-1].parts[-1].function_response
        if answer is not None and answer.name != "toolSearchTool":
            self.told.append(answer.response)
            yield _said(types.Part(text="That is all."), "STOP")
        elif answer is None:
            yield _said(_called("toolSearchTool", {"query": "select:rename_invoice"}), "STOP")
        else:
            yield _said(_called("rename_invoice", {"id": "7"}), self.reason)


def _said(part: types.Part, reason: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[part]), finish_reason=types.FinishReason(reason))


def _called(name: str, arguments: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


async def play(reason: str) -> Any:
    model = Model(reason=reason, told=[])
    with ToolSearch(tools(), encoder=None) as engine:
        agent = LlmAgent(name="clerk", model=model, tools=[ToolSearchToolset(engine)])
        async with InMemoryRunner(agent=agent, app_name="office") as runner:
            await runner.session_service.create_session(app_name="office", user_id="ann", session_id="one")
            message = types.Content(role="user", parts=[types.Part(text="Rename the invoice.")])
            async for _ in runner.run_async(user_id="ann", session_id="one", new_message=message):
                pass
    [told] = model.told
    return told


print(json.dumps([asyncio.run(play(reason)) for reason in sys.argv[1:]]))
