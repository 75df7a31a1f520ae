"""Two uses of tools: facts that a model lacks, and actions that it cannot do itself."""

from __future__ import annotations

from datetime import datetime

from model import model_or

from toolsearch import tool
from toolsearch.chat import ChatClient, scripted_calls

NOW = datetime.fromisoformat("2026-11-21T13:20:00+01:00")  # so that this prints the same every day


@tool
def current_time() -> str:
    """Get the current date and time in the user's time zone."""
    return NOW.isoformat()


@tool
def set_alarm(time: datetime) -> str:
    """Set an alarm for the given time.

    Args:
        time: When, in ISO 8601 with an offset.
    """
    print(f"[alarm set for {time:%H:%M}]")
    return "The alarm is set."


def main() -> None:
    model = model_or(
        "I do not know what day it is.",
        scripted_calls(("current_time", {})),
        "Tomorrow is Sunday.",
        scripted_calls(("current_time", {})),
        scripted_calls(("set_alarm", {"time": "2026-11-21T13:30:00+01:00"})),
        "I have set an alarm for 13:30.",
    )
    client = ChatClient(model)
    question = "What day is tomorrow?"
    print("without a tool: ", client.prompt(question).content_sync())
    print("with a tool:    ", client.prompt(question).tools(current_time).content_sync())

    request = client.prompt("Can you set an alarm 10 minutes from now?").tools(current_time, set_alarm)
    print("with two:       ", request.content_sync())


if __name__ == "__main__":
    main()
