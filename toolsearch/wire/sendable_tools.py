"""Definitions of tools as a request can hold them, and what was changed in them for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import given_name, is_in_another_script
from toolsearch.wire.sendable_schema import in_unicode, sendable_schema
from toolsearch.wire.tool_rules import LONGEST_DESCRIPTION

_GOES_ON: Final = " … (goes on in the description of the parameters)"
_LEAST_SHARE: Final = 0.7  # of the room that a cut at the end of a sentence or line has to leave used
_ENDS: Final = ("\n\n", "\n", ". ", " ")  # where to cut, best first


def sendable_definition(definition: ToolDefinition, wire_format: str) -> ToolDefinition:
    """Return *definition* itself if *wire_format* takes it; else one that it takes, by which the model reads as much.

    The end of a description that is too long becomes a part of the schema's. Arguments that a model gives by the
    definition are the tool's own by `own_arguments`.
    """
    schema = sendable_schema(definition.input_schema).schema
    title, description = _in_unicode(definition.title), _in_unicode(_description(definition, wire_format))
    said, rest = _cut(description or title, LONGEST_DESCRIPTION.get(wire_format))
    if rest:
        description, below = said, schema.get("description")
        schema = {**schema, "description": f"{rest}\n\n{below}" if below else rest}
    if schema is definition.input_schema and (title, description) == (definition.title, definition.description):
        return definition
    return replace(definition, title=title, description=description, input_schema=schema)


def sending_notes(definition: ToolDefinition) -> list[str]:
    """What models are sent otherwise than *definition* has it, in sentences for people."""
    notes = list(sendable_schema(definition.input_schema).notes)
    too_long = [
        each
        for each, most in LONGEST_DESCRIPTION.items()
        if _units(_description(definition, each) or definition.title) > most
    ]
    if too_long:
        most = min(LONGEST_DESCRIPTION[each] for each in too_long)
        notes.append(
            f"its description goes on in that of the parameters after {most:,} characters: {', '.join(too_long)}"
        )
    return notes


def _description(definition: ToolDefinition, wire_format: str) -> str:
    """Where a format has no place for a title, what the author calls the tool stands before its description, if a legal
    name cannot spell that.
    """
    given = given_name(definition) if definition.description and wire_format != "mcp" else ""
    return f"{given}: {definition.description}" if is_in_another_script(given) else definition.description


def _cut(text: str, most: int | None) -> tuple[str, str]:
    """The beginning of *text* that takes at most *most* units, marked as cut, and the rest; "" if there is none."""
    if most is None or _units(text) <= most:
        return text, ""
    room = most - len(_GOES_ON)
    kept = text[:room]
    while _units(kept) > room:
        kept = kept[: len(kept) - max((_units(kept) - room) // 2, 1)]
    places = (kept.rfind(end) + len(end.rstrip()) for end in _ENDS)
    at = next((place for place in places if place >= _LEAST_SHARE * len(kept)), len(kept))
    return kept[:at].rstrip() + _GOES_ON, text[at:].strip()


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _in_unicode(text: str) -> str:
    return text if text.isascii() else in_unicode(text)
