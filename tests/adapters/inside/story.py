"""A conversation of three turns over 500 tools, in which a model searches three times. Each framework plays it.

What the model says does not depend on what it reads, so that a framework's own fake model can say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from toolsearch import (
    Allow,
    CallLimits,
    Catalog,
    Deny,
    Session,
    SessionOptions,
    Tool,
    ToolCall,
    ToolCallingManager,
    ToolContext,
    ToolDefinition,
    ToolSearch,
)

SEARCH = "toolSearchTool"
Calls = list[tuple[str, dict[str, Any]]]

TURNS: dict[str, list[Calls | str]] = {
    "mail": [
        [(SEARCH, {"query": "send an email message", "limit": 1})],
        [("send_mail", {"to": "Ada", "text": "hello"})],
        [("send_mail", {"to": "Ada", "text": "once more"})],
        "The mail is sent.",
    ],
    "money": [
        [(SEARCH, {"query": "convert money to another currency", "limit": 1})],
        [("convert_money", {"amount": "some"}), ("convert_money", {"amount": 20})],
        "It is 40.",
    ],
    "room": [
        [(SEARCH, {"queries": ["book a meeting room", "select:pay_bill"], "limit": 1})],
        [("book_room", {"day": "Sunday"})],
        [("book_room", {"day": "Monday"})],
        [("book_room", {"day": "Tuesday"})],
        "Monday is booked.",
    ],
}
ORDERS = {"ada": ["mail", "money", "room"], "ben": ["room", "mail", "money"], "cleo": ["money", "room", "mail"]}


def send_mail(to: str, text: str) -> str:
    """Send an email message."""
    return f"sent {text!r} to {to}"


async def convert_money(amount: float) -> float:
    """Convert money to another currency."""
    return amount * 2


def book_room(day: str) -> str:
    """Book a meeting room."""
    if day == "Tuesday":
        raise RuntimeError("all rooms are taken")
    return f"booked on {day}"


def pay_bill(amount: float) -> str:
    """Pay a bill."""
    return f"paid {amount}"


def only_on_weekdays(call: ToolCall, tool: Tool, context: ToolContext) -> Allow | Deny:
    return Deny("closed on Sundays") if "Sunday" in str(call.arguments) else Allow()


def engine_of_500(**options: Any) -> ToolSearch:
    """In each turn one mail may be sent, and five tools called; in the whole conversation there are more calls."""
    catalog = Catalog([send_mail, convert_money, book_room, pay_bill])
    catalog.add(
        *(ToolDefinition(f"read_shelf_{n}", f"Read what lies on shelf {n} of the archive.") for n in range(496))
    )
    limits = CallLimits(total=5, per_tool_overrides={"send_mail": 1})
    manager = ToolCallingManager(before=[only_on_weekdays], limits=limits)
    return ToolSearch(catalog, encoder=None, manager=manager, options=SessionOptions(anticipate=False, **options))


def session_of(engine: ToolSearch, who: str) -> Session:
    return engine.session(who, deny=["pay_bill"])


@dataclass
class Story:
    """What the model says to one person; each person asks for the same in another order.

    listed   the names of the tools in each request
    results  what the model reads of each call, in order, and whether the framework marks it as failed
    """

    who: str
    listed: list[list[str]] = field(default_factory=list)
    results: list[tuple[str, bool]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._replies: Iterator[Calls | str] = (reply for topic in ORDERS[self.who] for reply in TURNS[topic])

    @property
    def questions(self) -> list[str]:
        return [f"{self.who}: {topic}, please" for topic in ORDERS[self.who]]

    @property
    def requests(self) -> int:
        return sum(len(TURNS[topic]) for topic in ORDERS[self.who])

    def reply(self, listed: list[str]) -> Calls | str:
        """What the model says to a request with these tools."""
        self.listed.append(listed)
        return next(self._replies)

    @property
    def record(self) -> dict[str, Any]:
        return {"listed": self.listed, "results": self.results, "answers": self.answers}


class Stories(dict[str, Story]):
    """All people's, by name."""

    def __init__(self) -> None:
        super().__init__({who: Story(who) for who in ORDERS})

    def told_to(self, question: str) -> Story:
        """Whose story it is, by what the person has said."""
        return self[question.partition(":")[0]]

    @property
    def record(self) -> dict[str, Any]:
        return {who: story.record for who, story in self.items()}
