"""A model of pydantic-ai's own for tests that says what it is given to say."""

from typing import Any

from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def scripted(*replies: Any) -> FunctionModel:
    left = iter(replies)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = next(left)
        return ModelResponse([TextPart(said)] if isinstance(said, str) else [ToolCallPart(*call) for call in said])

    return FunctionModel(model)
