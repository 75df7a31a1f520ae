"""Hand a value to tools that no model sees: here, the user who asks."""

from __future__ import annotations

import json

from model import model_or, show

from toolsearch import ToolContext, tool
from toolsearch.chat import ChatClient, scripted_calls

ORDERS = {"acme": {"A1": "shipped"}, "umbrella": {"A1": "lost"}}


@tool
def order_status(order: str, context: ToolContext) -> str:
    """Get the status of an order of the user's company."""
    return f"{ORDERS[context['tenant']][order]} (asked in {context['language']})"


def main() -> None:
    asks = scripted_calls(("order_status", {"order": "A1"}))
    model = model_or(asks, "It was shipped.", asks, "Ze is kwijt.")
    client = ChatClient(model, tools=[order_status], tool_context={"language": "en"})
    request = client.prompt("Where is my order A1?")

    show(request.tool_context(tenant="acme").call_sync())
    show(request.tool_context(tenant="umbrella", language="nl").call_sync())  # the request's goes first

    [shown] = request.request().prompt.options.tools
    print("what a model sees:", json.dumps(shown.definition.input_schema["properties"]))


if __name__ == "__main__":
    main()
