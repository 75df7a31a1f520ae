"""A model of LlamaIndex's own for tests that says what it is given to say."""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM


def scripted(*replies: Any) -> MockFunctionCallingLLM:
    left = iter(replies)

    def model(messages: Any, **_: Any) -> ChatMessage:
        said = next(left)
        if isinstance(said, str):
            return ChatMessage(role="assistant", blocks=[TextBlock(text=said)])
        calls = [
            ToolCallBlock(tool_name=name, tool_kwargs=arguments, tool_call_id=f"call_{len(messages)}_{name}")
            for name, arguments in said
        ]
        return ChatMessage(role="assistant", blocks=calls)

    return MockFunctionCallingLLM(response_generator=model)
