"""Conversations made for a catalog, where there are no logs of real ones. The same arguments make the same ones.

A model's queries are proposed from the tools' own words, so that they find more than real ones do: shares of turns that
fail are a lower bound. What is said costs what real conversations cost if its length is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from toolsearch.bench.arguments import sample_arguments
from toolsearch.bench.workload import Conversation, Step, Turn, Use
from toolsearch.errors import BadSettingError
from toolsearch.evaluation.proposals import propose_queries
from toolsearch.tools.definition import ToolDefinition

_WORDS: Final = (
    *("the", "report", "says", "that", "item", "was", "found", "and", "it", "is"),
    *("due", "next", "week", "for", "whole", "team", "as", "agreed"),
)
_MOST_QUERIES: Final = 3


@dataclass(frozen=True, slots=True)
class Preset:
    """The shape of conversations.

    turns          of the user in each
    needs          tools that a turn takes, one after the other
    reused         the share of needs that an earlier tool of the conversation fills
    result_words   words that a tool answers
    answer_words   words that the model answers the user
    retries        further queries where one does not find the tool
    """

    turns: int
    needs: int
    reused: float = 0.5
    result_words: int = 150
    answer_words: int = 60
    retries: int = 1


PRESETS: Final[Mapping[str, Preset]] = {
    "question": Preset(turns=1, needs=1),
    "assistant": Preset(turns=8, needs=1),
    "agent": Preset(turns=5, needs=5, result_words=300),
    "long": Preset(turns=30, needs=2),
}


def made_conversations(
    definitions: Sequence[ToolDefinition], preset: Preset, count: int, *, seed: int = 0
) -> list[Conversation]:
    """Return *count* conversations over tools that are drawn from *definitions*.

    Raises BadSettingError if there are none that a query can be proposed for.
    """
    maker = _Maker(definitions, preset, seed)
    return [maker.conversation(number) for number in range(count)]


class _Maker:
    def __init__(self, definitions: Sequence[ToolDefinition], preset: Preset, seed: int) -> None:
        self._definitions = sorted(definitions, key=lambda definition: definition.name)
        self._preset = preset
        self._seed = seed
        self._queries: dict[str, tuple[str, ...]] = {}

    def conversation(self, number: int) -> Conversation:
        draw = Random(f"{self._seed} {number}")  # noqa: S311  no secret
        known: list[ToolDefinition] = []
        return Conversation(tuple(self._turn(known, draw) for _ in range(self._preset.turns)))

    def _turn(self, known: list[ToolDefinition], draw: Random) -> Turn:
        uses = [self._use(self._tool(known, draw), draw) for _ in range(self._preset.needs)]
        asked = ", then ".join(use.queries[-1] for use in uses)
        return Turn(f"Please {asked}.", tuple(Step((use,)) for use in uses), _text(self._preset.answer_words, draw))

    def _tool(self, known: list[ToolDefinition], draw: Random) -> ToolDefinition:
        if known and draw.random() < self._preset.reused:
            return draw.choice(known)
        for _ in range(100):
            drawn = draw.choice(self._definitions) if self._definitions else None
            if drawn is not None and self._queries_of(drawn):
                known.append(drawn)
                return drawn
        raise BadSettingError("there is no tool here that a query can be made for; give a log of conversations instead")

    def _use(self, definition: ToolDefinition, draw: Random) -> Use:
        arguments = sample_arguments(definition.input_schema)
        queries = self._queries_of(definition)[: 1 + self._preset.retries]
        return Use(definition.name, arguments, _text(self._preset.result_words, draw), queries)

    def _queries_of(self, definition: ToolDefinition) -> tuple[str, ...]:
        queries = self._queries.get(definition.name)
        if queries is None:
            proposed = propose_queries([definition], _MOST_QUERIES, seed=self._seed)
            queries = self._queries[definition.name] = tuple(each.text for each in proposed)
        return queries


def _text(words: int, draw: Random) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(words))
