"""Decides how much of a found tool a model is shown: all, a shortened form, or nothing."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from toolsearch.tokens import TokenCounter, count_json
from toolsearch.tools.definition import HINTS, Tool, ToolDefinition, ToolReference
from toolsearch.tools.json_types import Json, rebuilt
from toolsearch.wire.mcp.definitions import KEYS_LENGTH, renamed_entry, sent_input_schema, write_sendable_tool
from toolsearch_indexes.queries import Pattern, Select, Words, name_candidates, read_form

_MOST_CHARACTERS_PER_TOKEN = 16  # a text with more is surely too long and is not counted
_LEAST_DESCRIPTION = 50  # tokens; instead of cutting a description shorter, the descriptions of parameters are left out
_MAX_TITLE = 200  # characters
_MARGINS = (0, 5, 25)  # tokens; two texts joined may take a few more than the sum of both
_TEXT_KEYWORDS = ("description", "title", "examples", "$comment")  # schema keywords that do not affect validation
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shown:
    """*definition* is None for a tool that is not shown at all; *note* says which parts were left out, or why the whole
    tool was.
    """

    definition: ToolDefinition | None
    note: str = ""


class ShownDefinitions:
    """Definitions as models see them, each computed once. Safe to share between threads.

    *on_note* gets a sentence for people about each definition that is not shown whole.
    """

    def __init__(self, counter: TokenCounter, on_note: Callable[[str], None] = logger.warning) -> None:
        self._counter = counter
        self._on_note = on_note
        self._known: dict[tuple[str, int], tuple[ToolDefinition, Shown]] = {}

    def of(self, definition: ToolDefinition, max_tokens: int | None) -> Shown:
        """Return *definition* itself if it takes at most *max_tokens* in MCP's format, the longest one.

        Otherwise its output schema goes, then the end of its description, marked as cut, then the descriptions of its
        parameters. A definition that is still too long is not shown. The constraints that validate arguments are never
        changed.
        """
        if max_tokens is None:
            return Shown(definition)
        key = (definition.name, max_tokens)
        known = self._known.get(key)
        if known is None or known[0] is not definition:
            shown = shortened(definition, max_tokens, self._counter)
            known = self._known[key] = (definition, shown)
            if shown.note:
                self._on_note(f"the tool {definition.name!r} is not shown whole: {shown.note}")
        return known[1]

    def of_tool(self, tool: Tool, max_tokens: int | None) -> Tool | None:
        """Return *tool* itself if both its definition and the entry that its server sent take at most *max_tokens*.

        Otherwise its entry is written anew from the definition that `of` returns, without fields that no version of MCP
        knows; None if `of` shows nothing.
        """
        definition = self.of(tool.definition, max_tokens).definition
        if definition is None:
            return None
        is_whole = definition is tool.definition
        if is_whole and (max_tokens is None or _is_within(renamed_entry(tool), max_tokens, self._counter)):
            return tool
        return replace(tool, definition=definition, origin=None)


def shortened(definition: ToolDefinition, max_tokens: int, counter: TokenCounter) -> Shown:
    """See `ShownDefinitions.of`."""
    if _fits(definition, max_tokens, counter):
        return Shown(definition)
    bare = replace(
        definition,
        title=definition.title[:_MAX_TITLE],
        output_schema=None,
        annotations={hint: definition.annotations[hint] for hint in HINTS if hint in definition.annotations},
    )
    if _fits(bare, max_tokens, counter):
        return Shown(bare, "its output schema, long title or further annotations are left out")
    cut = _with_description_cut(bare, max_tokens, counter, least=_LEAST_DESCRIPTION)
    if cut is not None:
        return Shown(cut, f"its description of {len(definition.description):,} characters is cut")
    bare = replace(bare, input_schema=rebuilt(bare.input_schema, _without_texts))
    if _fits(bare, max_tokens, counter):
        return Shown(bare, "the descriptions of its parameters are left out")
    cut = _with_description_cut(bare, max_tokens, counter, least=0)
    if cut is not None:
        return Shown(cut, "its description is cut, and those of its parameters are left out")
    return Shown(None, f"its schema alone takes more than the {max_tokens:,} tokens that one definition may take")


def _fits(definition: ToolDefinition, max_tokens: int, counter: TokenCounter) -> bool:
    parts = (
        definition.name, definition.title, definition.description, sent_input_schema(definition),
        definition.output_schema, definition.annotations,
    )  # fmt: skip
    if _most_bytes(parts) + KEYS_LENGTH <= max_tokens:  # true of nearly all definitions, so these are never serialized
        return True
    return _is_within(write_sendable_tool(definition), max_tokens, counter)


def _is_within(value: Json, max_tokens: int, counter: TokenCounter) -> bool:
    most_bytes = _most_bytes(value)
    if most_bytes <= max_tokens:  # a token has at least one byte
        return True
    return most_bytes <= max_tokens * _MOST_CHARACTERS_PER_TOKEN and count_json(value, counter) <= max_tokens


def _most_bytes(value: Json) -> int:
    """A fast upper bound of the bytes of *value* as JSON: the ASCII form is never shorter than UTF-8."""
    return len(json.dumps(value, separators=(",", ":")))


def _with_description_cut(
    bare: ToolDefinition, max_tokens: int, counter: TokenCounter, *, least: int
) -> ToolDefinition | None:
    """Return *bare* with as much of its description as fits; None if that is less than *least* tokens."""
    mark = f"[cut: the description has {len(bare.description):,} characters]"
    marked = replace(bare, description=mark)
    if not _fits(marked, max_tokens, counter):
        return None
    room = max_tokens - count_json(write_sendable_tool(marked), counter)
    if room < least:
        return None
    for margin in _MARGINS:
        kept = _beginning(bare.description, room - margin, counter)
        cut = replace(marked, description=f"{kept} … {mark}") if kept else marked
        if _fits(cut, max_tokens, counter):
            return cut
    return marked


def _beginning(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Return whole words from the beginning of *text*, of at most *max_tokens* as JSON."""
    if max_tokens < 1:
        return ""
    kept = text[: max_tokens * _MOST_CHARACTERS_PER_TOKEN]
    while (tokens := count_json(kept, counter)) > max_tokens:
        kept = kept[: int(len(kept) * 0.95 * max_tokens / tokens)]
    words = kept.rpartition(" ")[0] if len(kept) < len(text) else kept
    return (words or kept).rstrip()


def _without_texts(schema: dict[str, Json]) -> dict[str, Json]:
    return {keyword: value for keyword, value in schema.items() if keyword not in _TEXT_KEYWORDS}


Fit: TypeAlias = Literal["fits", "likely", "related"]
MOST_LOADED: Final = 3


# Of the best hits for short requests in the labelled sets, 71 to 85 % with a higher score are the tool of the label,
# which names one of several right ones; from .45 to .9, 26 to 73 %.
_CLEAR_SCORE: Final = 0.9


# Distance from the best hit in log odds. Within it, each further tool is the right one in one of six cases; beyond it,
# in one of ten.
_NEAR_THE_BEST: Final = 0.2


def is_weak(references: Sequence[ToolReference], *, is_retry: bool = False) -> bool:
    """Whether the best score is low enough that requests without a right tool often reach it. The second of two
    searches for the same, *is_retry*, has to find a clear answer.
    """
    if not references:
        return True
    best = references[0]
    return best.score < _CLEAR_SCORE if is_retry else best.confidence == "low"


def is_full_name(query: str, references: Sequence[ToolReference]) -> bool:
    """Whether *query* is the full name of the best of *references*, so that this tool alone is meant.

    Models may have added to it, such as ``functions.`` in front.
    """
    form = read_form(query)
    is_name = isinstance(form, Words) and bool(references)
    return is_name and references[0].name.casefold() in name_candidates(query.strip())


def fits_of(references: Sequence[ToolReference], *, is_retry: bool = False) -> list[Fit]:
    """How well each of *references*, best first and all of one kind, fits: those near the best fit, unless even the
    best is weak.
    """
    if is_weak(references, is_retry=is_retry):
        return ["related"] * len(references)
    best = references[0].score
    return [_fit(reference.score, best) for reference in references]


def is_near(score: float, best: float) -> bool:
    """Whether a tool with *score* fits nearly as well as a better one. No other is near a tool found by its name."""
    return _log_odds(score) >= _log_odds(best) - _NEAR_THE_BEST


def loaded(query: str, fits: Sequence[Fit], *, by_pattern: bool = False) -> int:
    """The number of tools found, from the first on, whose definitions the model is shown at once: up to three that fit.

    All tools that are selected by name are loaded. A pattern's matches are loaded all or not at all, because a model
    that sends a pattern is looking around.
    """
    form, fitting = read_form(query), sum(1 for _ in takewhile(lambda fit: fit != "related", fits))
    if isinstance(form, Select):
        return len(fits)
    if isinstance(form, Pattern) or by_pattern:
        return fitting if len(fits) <= MOST_LOADED else 0
    return min(fitting, MOST_LOADED)


def _fit(score: float, best: float) -> Fit:
    if not is_near(score, best):
        return "related"
    return "fits" if score >= _CLEAR_SCORE else "likely"


def _log_odds(score: float) -> float:
    """The log odds of a score in (0, 1]; a tool found by name has score 1."""
    return math.inf if score >= 1 else math.log(score / (1 - score))
