"""A model of ADK that says what it is given to say."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    model: str = "scripted"
    replies: list[Any]

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        said = self.replies.pop(0)
        parts = [types.Part(text=said)] if isinstance(said, str) else [_called(*call) for call in said]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _called(name: str, arguments: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def scripted(*replies: Any) -> Scripted:
    return Scripted(replies=list(replies))
