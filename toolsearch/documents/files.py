"""Reads JSON, JSONL and YAML files that come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolsearch.documents.texts import DocumentFormat, JsonLines, parse_document, parse_lines
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json

_FORMATS: Mapping[str, DocumentFormat] = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
SUFFIXES = frozenset(_FORMATS)
MAX_BYTES = 200_000_000  # read whole into memory, and several times over once parsed


def read_document(path: Path) -> Json:
    """Return the file's value; a JSONL file gives the list of its lines' values.

    Raises SourceError, naming the file, if it cannot be read, is too large, or is malformed.
    """
    return parse_document(_read_text(path), _FORMATS.get(path.suffix.lower(), "json"), str(path))


def is_json_lines(path: Path) -> bool:
    return _FORMATS.get(path.suffix.lower()) == "jsonl"


def read_json_lines(path: Path) -> JsonLines:
    """Return the values of the lines, and which lines hold none.

    Raises SourceError, naming the file, if it cannot be read, is too large, or has lines and no good one.
    """
    lines = parse_lines(_read_text(path))
    if lines.bad and not lines.values:
        first = lines.bad[0]
        raise SourceError(f"{path} is malformed: line {first.number}: {first.reason}")
    return lines


def _read_text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SourceError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} are read")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
