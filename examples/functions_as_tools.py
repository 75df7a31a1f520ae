"""Functions as tools: with an input, with a context, without an input, and without a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model import model_or, show

from toolsearch import FunctionToolCallback, ToolContext
from toolsearch.chat import ChatClient, scripted_calls


@dataclass
class Place:
    city: str
    unit: Literal["celsius", "fahrenheit"] = "celsius"


@dataclass
class Note:
    text: str


notes: list[str] = []


def weather(place: Place) -> dict[str, object]:
    """Get the weather in a city."""
    return {"city": place.city, "degrees": 9, "unit": place.unit}


def greeting(place: Place, context: ToolContext) -> str:
    """Greet the user in the way of a city."""
    return f"Goedendag, {context['user']}!" if place.city == "Amsterdam" else f"Hello, {context['user']}!"


def remember(note: Note) -> None:
    notes.append(note.text)


TOOLS = [
    FunctionToolCallback.build("weather", weather),
    FunctionToolCallback.build("greeting", greeting),
    FunctionToolCallback.build("cities", lambda: ["Amsterdam", "Oslo"], description="List the cities there are."),
    FunctionToolCallback.build("remember", remember, description="Remember a note."),
]


def main() -> None:
    print({each.name: list(each.definition.input_schema["properties"]) for each in TOOLS})
    model = model_or(
        scripted_calls(
            ("cities", {}),
            ("weather", {"city": "Amsterdam"}),
            ("greeting", {"city": "Amsterdam"}),
            ("remember", {"text": "take a coat"}),
        ),
        "Goedendag, Ada! Take a coat: it is 9 degrees.",
    )
    request = ChatClient(model, tools=TOOLS).prompt("Greet me, and tell me what to wear.").tool_context(user="Ada")
    show(request.call_sync())
    print(notes)


if __name__ == "__main__":
    main()
