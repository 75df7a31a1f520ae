"""An agent as a tool of another: it has its own model, tools and instructions, and shares the caller's context."""

from __future__ import annotations

from model import model_or, show

from toolsearch import ToolContext, tool
from toolsearch.chat import ChatClient, chat_tool, scripted_calls


@tool
def search_flights(destination: str, context: ToolContext) -> list[str]:
    """Search for flights from the user's home airport."""
    return [f"{context['home']}-{destination} 09:40, 120 EUR", f"{context['home']}-{destination} 17:05, 80 EUR"]


def main() -> None:
    traveller = ChatClient(
        model_or(
            scripted_calls(("search_flights", {"destination": "OSL"})), "The cheapest leaves at 17:05 and costs 80 EUR."
        ),
        tools=[search_flights],
        system="You find the cheapest way to travel.",
    )
    ask_traveller = chat_tool(traveller, name="travel_agent", description="Finds journeys.")

    model = model_or(scripted_calls(("travel_agent", {"request": "Cheapest flight to Oslo?"})), "Fly at 17:05.")
    show(ChatClient(model, tools=[ask_traveller]).prompt("I must go to Oslo.").tool_context(home="AMS").call_sync())


if __name__ == "__main__":
    main()
