"""The gateway's description of itself for a client: its instructions, and its own tools as MCP lists them.

The instructions name the topics of the servers only in words from the tools' names, since anybody can write a
description.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolsearch.discovery.call_tools import READ_SKILL_TOOL, call_tool_entries
from toolsearch.discovery.search_tool import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MOST_TOPICS,
    Topics,
    names_of,
    said_of,
    search_tool_definition,
)
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import READ_SKILL, SEPARATOR, TOOL_NAME, in_words
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, always_loaded, tool_name, write_tool

_SUBJECT_WIDTH: Final = 240  # most characters for all servers' names and topics in the search tool and the instructions


@dataclass(frozen=True, slots=True)
class OwnTools:
    """*entries* are the search tool and the call tools. Their bytes never change while this object is in use."""

    instructions: str
    entries: tuple[JsonObject, ...]

    @classmethod
    def over(
        cls,
        topics: Topics,
        *,
        limit: int = DEFAULT_LIMIT,
        max_limit: int = MAX_LIMIT,
        hint: str = "",
        is_split: bool = True,
    ) -> OwnTools:
        """The tools of a gateway in front of the servers of *topics*; the other parameters are its settings."""
        subject = said_of(topics, _SUBJECT_WIDTH)
        short = names_of(topics)
        search = write_tool(
            search_tool_definition(default_limit=limit, max_limit=max_limit, hint=hint, subject=subject)
        )
        entries = [_sendable(search), *call_tool_entries(is_split=is_split, subject=short)]
        hidden = f"The tools of {subject}" if subject else "Many more tools"
        return cls(
            f"{hidden} are behind {TOOL_NAME}: search for what you need in a few words before you say that you cannot "
            "do it.",
            tuple(map(always_loaded, entries)),
        )


READ_SKILL_ENTRY: Final[JsonObject] = always_loaded(write_tool(READ_SKILL_TOOL))
"""Listed right after the search tool, for those who reach a skill."""


def with_reading(entries: Sequence[JsonObject], *, is_needed: bool) -> list[JsonObject]:
    """*entries*, of which the first is the search tool, with the tool that reads skills behind it if there are any."""
    search, *others = [each for each in entries if tool_name(each) != READ_SKILL]
    return [search, *([READ_SKILL_ENTRY] if is_needed else []), *others]


def _sendable(search: dict[str, Any]) -> dict[str, Any]:
    """The search tool without required arguments. Models also send ``query``, which we understand, but clients would
    refuse such a call for a missing ``queries``.
    """
    schema = {key: value for key, value in search[INPUT_SCHEMA].items() if key != "required"}
    return {**search, INPUT_SCHEMA: schema}


_SHORTEST = 3  # fewest letters of a topic word

_COMMON_WORDS = frozenset(
    """
    add all and append apply batch by call cancel change check clear close complete configure convert copy count
    create current delete disable do download edit enable end execute export fetch file find for from get import
    info insert into invoke item items list load lookup make many mcp merge modify move new not off open patch ping
    post put query read refresh remove rename replace request reset resolve restore resume retrieve run save search
    select send set show start status stop submit sync test the tool tools update upload upsert use validate view
    with write
    """.split()  # noqa: SIM905  a list of words is easier to read this way
)


def topics_of(definitions: Iterable[ToolDefinition]) -> Topics:
    """Up to `MOST_TOPICS` words for each server of *definitions*: the most frequent first, ties by name."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for definition in definitions:
        if definition.server:
            words[definition.server].update(set(_words(definition)))
    return {server: _best(counted, server) for server, counted in sorted(words.items())}


def _words(definition: ToolDefinition) -> list[str]:
    return in_words(definition.name.partition(SEPARATOR)[2] or definition.name).split()


def _best(counted: Counter[str], server: str) -> list[str]:
    own = set(in_words(server).split())
    candidates = [word for word in counted if word.isalpha() and len(word) >= _SHORTEST]
    candidates = [word for word in candidates if word not in _COMMON_WORDS and word not in own]
    return sorted(candidates, key=lambda word: (-counted[word], word))[:MOST_TOPICS]
