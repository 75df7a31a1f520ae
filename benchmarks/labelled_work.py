"""Conversations in which a model asks with labelled queries, so that it misses tools as a real one does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from benchmarks.agent_queries import AgentQuery, read_queries
from benchmarks.datasets import AGENT_QUERIES
from toolsearch.bench.conversations import Dialogue, Preset, Step, Turn, Use, made_conversations
from toolsearch.tools.definition import ToolDefinition

FIRST = 10  # hits among which the model sees a right tool, if there is one


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Searches(Protocol):
    """An engine, or an index."""

    def search(self, query: str, *, limit: int) -> Sequence[Named]: ...


def queries_for(files: Iterable[str], names: Iterable[str]) -> list[AgentQuery]:
    """The queries of `agent_queries` in *files* that a tool of *names* serves."""
    known = frozenset(names)
    return [query for file in files for query in read_queries(AGENT_QUERIES / f"{file}.jsonl", known)[0]]


def labelled_conversations(
    definitions: Sequence[ToolDefinition],
    queries: Sequence[AgentQuery],
    searched: Searches,
    preset: Preset,
    count: int,
    *,
    seed: int = 0,
) -> list[Dialogue]:
    """*count* conversations that need only tools with a labelled query, which is what the user says and the model asks.

    Where it does not find the tool, the model asks once more, in the tool's own words.
    """
    texts = needed_tools(queries, searched)
    made = made_conversations([each for each in definitions if each.name in texts], preset, count, seed=seed)
    return [relabelled(conversation, texts) for conversation in made]


def needed_tools(queries: Sequence[AgentQuery], searched: Searches) -> dict[str, str]:
    """By tool, a query that it serves. Of several right ones the model takes the one that is found first."""
    texts: dict[str, str] = {}
    for query in queries:
        found = (hit.name for hit in searched.search(query.text, limit=FIRST))
        texts.setdefault(next((name for name in found if name in query.relevant), min(query.relevant)), query.text)
    return texts


def relabelled(conversation: Dialogue, texts: Mapping[str, str]) -> Dialogue:
    return replace(conversation, turns=tuple(_turn(turn, texts) for turn in conversation.turns))


def _turn(turn: Turn, texts: Mapping[str, str]) -> Turn:
    steps = tuple(Step(tuple(_use(use, texts) for use in step.calls), step.text) for step in turn.steps)
    asked = ", then ".join(texts[use.name] for step in steps for use in step.calls)
    return Turn(f"Please {asked}.", steps, turn.answer)


def _use(use: Use, texts: Mapping[str, str]) -> Use:
    return replace(use, queries=(texts[use.name], *use.queries[:1]))
