"""Makes logged conversations playable over a catalog: with its tools' names, and queries for what they call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolsearch.bench.workload import Conversation, Step, Turn, Use
from toolsearch.discovery.call_tools import CALL_TOOLS
from toolsearch.documents.json_values import as_list, as_object
from toolsearch.evaluation.proposals import propose_queries
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME

_OF_CLIENTS: Final = "mcp__"  # some clients put it before the name of each MCP server
_MOST_QUERIES: Final = 2


@dataclass(frozen=True, slots=True)
class Logged:
    """*conversations* are ready to play.

    missing   calls of tools that the catalog lacks, by name; in each way of giving tools these fail
    guessed   calls for which the log has no search, and whose queries are made from the tool's own words
    """

    conversations: tuple[Conversation, ...]
    missing: Mapping[str, int]
    guessed: int


def logged(conversations: Iterable[Conversation], definitions: Iterable[ToolDefinition], *, seed: int = 0) -> Logged:
    """Searches in the log become the queries of the calls after them, and are not played themselves."""
    fitter = _Fitter({definition.name: definition for definition in definitions}, seed)
    fitted = tuple(
        replace(each, turns=tuple(fitter.turn(turn) for turn in each.turns)) for each in conversations if each.turns
    )
    return Logged(fitted, dict(sorted(fitter.missing.items())), fitter.guessed)


class _Fitter:
    def __init__(self, definitions: Mapping[str, ToolDefinition], seed: int) -> None:
        self.missing = Counter[str]()
        self.guessed = 0
        self._definitions = definitions
        self._seed = seed
        self._proposed: dict[str, tuple[str, ...]] = {}

    def turn(self, turn: Turn) -> Turn:
        searched: tuple[str, ...] = ()
        steps: list[Step] = []
        for step in turn.steps:
            searched = tuple(query for use in step.calls for query in _queries_in(use)) or searched
            calls = tuple(self._use(_unwrapped(use), searched) for use in step.calls if not _is_search(use))
            if calls:
                steps.append(replace(step, calls=calls))
        return replace(turn, steps=tuple(steps))

    def _use(self, use: Use, searched: Sequence[str]) -> Use:
        name = use.name if use.name in self._definitions else use.name.removeprefix(_OF_CLIENTS)
        definition = self._definitions.get(name)
        if definition is None:
            self.missing[use.name] += 1
            return replace(use, queries=tuple(searched))
        self.guessed += not searched
        return replace(use, name=name, queries=tuple(searched) or self._queries_of(definition))

    def _queries_of(self, definition: ToolDefinition) -> tuple[str, ...]:
        queries = self._proposed.get(definition.name)
        if queries is None:
            proposed = propose_queries([definition], _MOST_QUERIES, seed=self._seed)
            texts = [each.text for each in proposed] or [definition.name.replace("_", " ")]
            queries = self._proposed[definition.name] = tuple(texts)
        return queries


def _is_search(use: Use) -> bool:
    return _own_name(use) == TOOL_NAME


def _own_name(use: Use) -> str:
    """Without a gateway's name before it."""
    return use.name.rpartition("__")[2]


def _queries_in(use: Use) -> list[str]:
    if not _is_search(use):
        return []
    asked = [use.arguments.get("query"), *(as_list(use.arguments.get("queries")) or ())]
    return [query for query in asked if isinstance(query, str) and query]


def _unwrapped(use: Use) -> Use:
    """The tool that was called by way of one of ours."""
    name = use.arguments.get("name")
    if _own_name(use) not in CALL_TOOLS or not isinstance(name, str):
        return use
    return replace(use, name=name, arguments=as_object(use.arguments.get("arguments")) or {})
