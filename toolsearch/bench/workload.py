"""Conversations that costs are counted for: what was asked, which tools were called for it, and what they gave."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Use:
    """One call of a tool.

    result   what the model was sent of it, as text; "" if nothing has come back
    queries  what a model searches for where it has no such tool yet: the first, and if that does not find the tool the
             next. After the last the model does without the tool. None are needed where nothing is searched
    """

    name: str
    arguments: JsonObject
    result: str = ""
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model that calls tools: its calls, which do not wait for each other, and what it said beside."""

    calls: tuple[Use, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user asked, the steps that it took, and the answer; "" if a log ends before it, or the user went on."""

    user: str
    steps: tuple[Step, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """*system* is what the system said, all of it."""

    turns: tuple[Turn, ...]
    system: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between requests: the model's own within a turn, the user's between turns. What is cached may go cold."""

    reply_s: float = 5.0
    turn_s: float = 60.0
