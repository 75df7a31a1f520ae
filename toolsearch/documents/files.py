"""Reads JSON, JSONL and YAML files that come from anywhere."""

from __future__ import annotations

import json
from pathlib import Path

from toolsearch.documents.yaml_text import parse_yaml
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml"})
MAX_BYTES = 200_000_000  # read whole into memory, and several times over once parsed


def read_document(path: Path) -> Json:
    """Return the file's value; a JSONL file gives the list of its lines' values.

    Raises SourceError, naming the file, if it cannot be read, is too large, or is malformed.
    """
    text = _read_text(path)
    suffix = path.suffix.lower()
    try:
        if suffix in {".jsonl", ".ndjson"}:
            return _parse_lines(text)
        if suffix in {".yaml", ".yml"}:
            return parse_yaml(text)
        return json.loads(text)
    except RecursionError:
        raise SourceError(f"{path} is nested too deeply to be read") from None
    except ValueError as error:
        raise SourceError(f"{path} is malformed: {error}") from error


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


def _parse_lines(text: str) -> list[Json]:
    values: list[Json] = []
    for number, line in enumerate(text.split("\n"), start=1):  # not splitlines: JSON strings may hold U+2028
        if line.strip():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    return values
