"""Ask the model for more than a tool needs, such as the reason for a call."""

from __future__ import annotations

from typing import Literal

from model import model_or, show
from pydantic import BaseModel, Field

from toolsearch import AugmentedArguments, AugmentedToolProvider, tool
from toolsearch.chat import ChatClient, scripted_calls


@tool
def weather(city: str) -> str:
    """Get the weather in a city."""
    return f"rain in {city}"


class Thought(BaseModel):
    reason: str = Field(description="Why you call this tool, step by step.")
    confidence: Literal["low", "high"] = "high"


def note(event: AugmentedArguments[Thought]) -> None:
    print(f"[{event.definition.name}: {event.arguments.reason}, {event.arguments.confidence}]")


def main() -> None:
    provider = AugmentedToolProvider(weather, model=Thought, consumer=note)
    [augmented] = provider.tools()
    print(list(augmented.definition.input_schema["properties"]), augmented.definition.input_schema["required"])

    model = model_or(
        scripted_calls(("weather", {"city": "Oslo", "reason": "the user travels there"})), "Take an umbrella."
    )
    show(ChatClient(model, tools=[provider]).prompt("I go to Oslo. What do I need?").call_sync())


if __name__ == "__main__":
    main()
