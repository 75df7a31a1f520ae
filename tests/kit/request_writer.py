"""A model that writes requests as it was asked to, for the tools that it is shown."""

import json
from typing import Any

from toolsearch.chat.model import Prompt
from toolsearch.wire.answers import ChatResponse, Usage
from toolsearch.wire.messages import AssistantMessage


def requests_for(name: str) -> list[str]:
    return [f"need {name}", f"please {name}", f"{name} at 3 pm", f"a wish like {name}"]


def asked_in(text: str) -> list[str]:
    """The names of the tools that a question is about."""
    return [tool["name"] for tool in json.loads(text)["tools"]]


def answer_to(text: str, **others: Any) -> str:
    """A whole answer, in which *others* are said in place of the requests of some tools; None leaves one out."""
    said = {name: others.get(name, requests_for(name)) for name in asked_in(text)}
    return json.dumps({"tools": [{"name": name, "requests": each} for name, each in said.items() if each is not None]})


def well_written(prompt: Prompt) -> ChatResponse:
    text = prompt.messages[-1].text  # type: ignore[union-attr]
    return ChatResponse(AssistantMessage(answer_to(text)), usage=Usage(100, 20))
