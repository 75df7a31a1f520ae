"""A model of LangChain's own for tests that says what it is given to say."""

from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Bindable(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools, **options)


def scripted(*replies: Any) -> GenericFakeChatModel:
    return Bindable(messages=iter([_message(place, said) for place, said in enumerate(replies)]))


def _message(place: int, said: Any) -> AIMessage:
    if isinstance(said, str):
        return AIMessage(said)
    calls = [{"name": name, "args": arguments, "id": f"call_{place}_{name}"} for name, arguments in said]
    return AIMessage("", tool_calls=calls)
