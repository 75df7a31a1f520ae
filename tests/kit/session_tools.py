"""Four tools of an assistant, and an engine that searches them however few they are."""

from collections.abc import Callable
from typing import Any

from toolsearch import (
    Catalog,
    PassThrough,
    SessionOptions,
    SessionStore,
    ToolSearch,
    tool,
)

FORMATS = ("openai", "openai-responses", "anthropic", "mcp")
SEARCH = "toolSearchTool"
ALWAYS_SEARCH = PassThrough(max_tools=0)


def send_mail(to: str, text: str) -> str:
    """Send an email message."""
    return f"sent {text!r} to {to}"


def list_events(day: str) -> list[str]:
    """List the events of a calendar on a day."""
    return [f"{day}: lunch"]


async def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


@tool(tags=("write",))
def pay_bill(amount: float) -> str:
    """Pay a bill with money."""
    raise RuntimeError("no money left")


FUNCTIONS: list[Callable[..., Any]] = [send_mail, list_events, convert_time, pay_bill]


def engine_of(*, sessions: SessionStore | None = None, catalog: Catalog | None = None, **options: Any) -> ToolSearch:
    chosen = SessionOptions(**{"pass_through": ALWAYS_SEARCH, **options})
    catalog = catalog or Catalog.from_functions(FUNCTIONS)
    return ToolSearch(catalog, encoder=None, sessions=sessions, options=chosen)


def names_in(tools: list[dict[str, Any]]) -> list[str]:
    return [entry["function"]["name"] if "function" in entry else entry["name"] for entry in tools]
