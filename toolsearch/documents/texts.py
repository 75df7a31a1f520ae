"""Parses the text of a document whose format is known, or is told by the text itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolsearch.documents.yaml_text import parse_yaml
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json

DocumentFormat: TypeAlias = Literal["json", "jsonl", "yaml"]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of JSON lines that is none. Lines are counted from 1."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The values of the good lines, and the others."""

    values: list[Json]
    bad: tuple[BadLine, ...]


def parse_document(text: str, document_format: DocumentFormat | None, origin: str) -> Json:
    """Return the value; JSONL gives the list of its lines' values. Without a format, the text itself tells it.

    Raises SourceError, naming *origin*, if it is malformed or nested too deeply.
    """
    try:
        return _parse(text, document_format or _format_of(text))
    except RecursionError:
        raise SourceError(f"{origin} is nested too deeply to be read") from None
    except ValueError as error:
        raise SourceError(f"{origin} is malformed: {error}") from error


def _parse(text: str, document_format: DocumentFormat) -> Json:
    if document_format == "jsonl":
        return _every_line(parse_lines(text))
    return parse_yaml(text) if document_format == "yaml" else json.loads(text)


def _format_of(text: str) -> DocumentFormat:
    """JSON begins with a bracket, and is JSONL if its first line is whole and others follow; all else is YAML."""
    start = text.lstrip()
    if not start.startswith(("{", "[")):
        return "yaml"
    first, _, rest = start.partition("\n")
    if not rest.strip():
        return "json"
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return "json"
    return "jsonl"


def parse_lines(text: str) -> JsonLines:
    """Read what can be read of JSON lines; empty ones are left out."""
    values: list[Json] = []
    bad: list[BadLine] = []
    for number, line in enumerate(text.split("\n"), start=1):  # not splitlines: JSON strings may hold U+2028
        if line.strip():
            try:
                values.append(json.loads(line))
            except RecursionError:
                bad.append(BadLine(number, "it is nested too deeply"))
            except ValueError as error:
                bad.append(BadLine(number, not_json(error)))
    return JsonLines(values, tuple(bad))


def not_json(error: ValueError) -> str:
    """What is wrong with a line that `json.loads` has refused: where in the line, since it knows no other line."""
    said = f"{error.msg} (character {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"it is not JSON: {said}"


def _every_line(lines: JsonLines) -> list[Json]:
    for first in lines.bad[:1]:
        raise ValueError(f"line {first.number}: {first.reason}")
    return lines.values
