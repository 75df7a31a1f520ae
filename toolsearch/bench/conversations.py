"""Conversations that costs are counted for; and how they are made up for a catalog without logs of real ones.

The same arguments make the same conversations. A model's queries are proposed from the tools' own words, so that they
find more than real ones do: shares of turns that fail are a lower bound. Messages have the lengths of real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.errors import BadSettingError
from toolsearch.evaluation.queries import propose_queries
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Use:
    """One call of a tool.

    result   the text that the model was sent; "" without a result
    queries  queries of a model without the tool: the first, and if that does not find the tool, the
             next. After the last the model does without the tool. Without a search none are needed
    """

    name: str
    arguments: JsonObject
    result: str = ""
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model that calls tools: its text, and its calls, which do not wait for each other."""

    calls: tuple[Use, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's message, the steps that it took, and the answer; "" if the log has no answer."""

    user: str
    steps: tuple[Step, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation. *system* is all text of the system."""

    turns: tuple[Turn, ...]
    system: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between requests: the model's own within a turn, the user's between turns. A cache may go cold
    meanwhile.
    """

    reply_s: float = 5.0
    turn_s: float = 60.0


_DEEPEST: Final = 4

_OF_TYPE: Final[Mapping[str, Json]] = {
    "string": "as it was asked for", "integer": 12, "number": 12.5, "boolean": True, "null": None,
}  # fmt: skip


def sample_arguments(schema: JsonObject) -> dict[str, Json]:
    """A value for each required property; nothing checks them, since no tool runs."""
    properties = as_object(schema.get("properties")) or {}
    required = [name for name in as_list(schema.get("required")) or () if isinstance(name, str)]
    return {name: _value(as_object(properties.get(name)) or {}, 1) for name in required}


def _value(schema: JsonObject, depth: int) -> Json:
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    choices = as_list(schema.get("enum"))
    if choices:
        return choices[0]
    kind = _kind(schema)
    if kind == "object":
        return sample_arguments(schema) if depth < _DEEPEST else {}
    if kind == "array":
        items = as_object(schema.get("items"))
        return [_value(items, depth + 1)] if items is not None and depth < _DEEPEST else []
    return _OF_TYPE.get(kind, _OF_TYPE["string"])


def _kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    for each in (kind, *(as_list(kind) or ())):
        if isinstance(each, str) and each != "null":
            return each
    for keyword in ("anyOf", "oneOf", "allOf"):
        for each in as_list(schema.get(keyword)) or ():
            found = as_object(each)
            if found is not None and _kind(found) != "null":
                return _kind(found)
    return "object" if "properties" in schema else "string"


_WORDS: Final = (
    *("the", "report", "says", "that", "item", "was", "found", "and", "it", "is"),
    *("due", "next", "week", "for", "whole", "team", "as", "agreed"),
)

_MOST_QUERIES: Final = 3


@dataclass(frozen=True, slots=True)
class Preset:
    """The shape of conversations.

    turns          turns of the user in each
    needs          tools that a turn takes, one after the other
    reused         the share of needs that an earlier tool of the conversation fills
    result_words   words in a tool's answer
    answer_words   words in the model's answer to the user
    retries        further queries if one does not find the tool
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
) -> list[Dialogue]:
    """Return *count* conversations with tools drawn from *definitions*.

    Raises BadSettingError if no query can be proposed for any of them.
    """
    maker = _Maker(definitions, preset, seed)
    return [maker.conversation(number) for number in range(count)]


class _Maker:
    def __init__(self, definitions: Sequence[ToolDefinition], preset: Preset, seed: int) -> None:
        self._definitions = sorted(definitions, key=lambda definition: definition.name)
        self._preset = preset
        self._seed = seed
        self._queries: dict[str, tuple[str, ...]] = {}

    def conversation(self, number: int) -> Dialogue:
        draw = Random(f"{self._seed} {number}")  # noqa: S311  the seed is not a secret
        known: list[ToolDefinition] = []
        return Dialogue(tuple(self._turn(known, draw) for _ in range(self._preset.turns)))

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
        raise BadSettingError("no query can be made for any of these tools; give a log of conversations instead")

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
