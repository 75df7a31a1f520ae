"""A provider of LiteLLM that says what it is given to say, but for calls of tools that it was not sent."""

from typing import Any

import litellm
from litellm import CustomLLM, ModelResponse


class Scripted(CustomLLM):
    def __init__(self, *replies: Any) -> None:
        super().__init__()
        self._replies = list(replies)

    async def acompletion(self, *_arguments: Any, optional_params: dict[str, Any], **_options: Any) -> ModelResponse:
        sent = {tool["function"]["name"] for tool in optional_params["tools"]}
        said = self._replies.pop(0)
        while not isinstance(said, str) and not sent.issuperset(name for name, _ in said):
            said = self._replies.pop(0)
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if not isinstance(said, str):
            calls = [{"name": name, "arguments": str(arguments)} for name, arguments in said]
            called = [{"id": f"call_{each['name']}", "type": "function", "function": each} for each in calls]
            message = {"role": "assistant", "content": None, "tool_calls": called}
        usage = {"prompt_tokens": 10 * len(sent), "completion_tokens": 1, "total_tokens": 10 * len(sent) + 1}
        return ModelResponse(choices=[{"message": message}], usage=usage)


def scripted(*replies: Any) -> str:
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": Scripted(*replies)}]
    return "scripted/model"
