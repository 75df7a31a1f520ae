"""Tools for every request of a client, tools for one request, and tools by name."""

from __future__ import annotations

from model import model_or

from toolsearch import StaticToolCallbackResolver, ToolSearchError, as_tools, tool
from toolsearch.chat import ChatClient, scripted_calls


@tool
def current_time() -> str:
    """Get the time."""
    return "13:20"


@tool
def set_alarm(time: str) -> str:
    """Set an alarm."""
    return f"rings at {time}"


@tool
def cancel_alarm() -> str:
    """Cancel the alarm."""
    return "cancelled"


def main() -> None:
    model = model_or("Hello.", "Hello again.", scripted_calls(("cancel_alarms", {})), "There is no alarm to cancel.")
    resolver = StaticToolCallbackResolver(as_tools(set_alarm, cancel_alarm))  # ImportPathResolver imports by path
    client = ChatClient(model, tools=[current_time], resolver=resolver)

    plain = client.prompt("Hello!")
    more = client.prompt("Hello!").tools(set_alarm).tool_names("cancel_alarm")
    for request in (plain, more):
        print([each.name for each in request.request().prompt.options.tools], request.content_sync())

    # What a request does not attach is not run, and a model that makes up a name reads which ones there are.
    response = more.call_sync()
    print([result.text for step in response.steps for result in getattr(step, "results", ())], response.text)

    for mistake in (client.prompt("Hello!").tool_names("set_alarms"), client.prompt("Hello!").tools(lambda_tool())):
        try:
            mistake.content_sync()
        except ToolSearchError as error:
            print(type(error).__name__)


def lambda_tool() -> object:
    """Another tool that wants the name of the client's own."""

    @tool(name="current_time", description="Another clock.")
    def other() -> str:
        return "12:20"

    return other


if __name__ == "__main__":
    main()
