"""Reads untrusted JSON, JSONL and YAML, as text or in files.

YAML becomes the value that the same document would have as JSON, without recursion and within bounds. PyYAML's own
loaders follow YAML 1.1, where ``on`` is true and ``2020-01-01`` a date; its fast one dies of deep nesting, and its
values may share one object a billion times. So only its parser is used, and the values are built here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json

MAX_NODES = 5_000_000  # each alias counts as all that it stands for
MAX_DEPTH = 500
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")  # 007 stays text, because it is an identifier
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_WORDS: dict[str, Json] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def parse_yaml(text: str) -> Json:
    """Return the first document's value. Raises ValueError if it is malformed or beyond the bounds."""
    import yaml

    try:
        return _Builder().build(_events(text))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _events(text: str) -> Iterator[Any]:
    import yaml

    # The C loader is ten times faster, but not every PyYAML has it.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, loader)


class _Builder:
    """Builds values bottom up: a stack of open containers, each with the key that waits for its value."""

    def __init__(self) -> None:
        self._anchors: dict[str, tuple[Json, int]] = {}  # anchor -> its value and the number of nodes in it
        self._nodes = 0

    def build(self, events: Iterator[Any]) -> Json:
        import yaml

        open_items: list[list[Json]] = [[]]  # the children of each open container, keys and values in turn
        started: list[tuple[str | None, int]] = []  # the anchor of each open container, and the nodes seen before it
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._count(1)
                self._finish(open_items, _scalar(event), event.anchor, 1)
            elif isinstance(event, yaml.AliasEvent):
                self._finish(open_items, self._aliased(event.anchor), None, 0)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._count(1)
                started.append((event.anchor, self._nodes))
                open_items.append([])
                if len(started) > MAX_DEPTH:
                    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                items = open_items.pop()
                anchor, before = started.pop()
                value = _mapping(items) if isinstance(event, yaml.MappingEndEvent) else items
                self._finish(open_items, value, anchor, self._nodes - before + 1)
            elif isinstance(event, yaml.DocumentEndEvent):
                break
        return open_items[0][0] if open_items[0] else None

    def _finish(self, open_items: list[list[Json]], value: Json, anchor: str | None, nodes: int) -> None:
        open_items[-1].append(value)
        if anchor:
            self._anchors[anchor] = (value, nodes)

    def _aliased(self, anchor: str | None) -> Json:
        if anchor is None or anchor not in self._anchors:
            raise ValueError(f"the alias *{anchor} stands for nothing, or contains itself")
        value, nodes = self._anchors[anchor]
        self._count(nodes)
        return value

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise ValueError(f"it has more than {MAX_NODES:,} nodes, aliases written out")


def _mapping(items: list[Json]) -> dict[str, Json]:
    keys = items[::2]
    if not all(isinstance(key, (str, int, float, bool, type(None))) for key in keys):
        raise ValueError("a mapping has a mapping or a list as its key")
    return {_key(key): value for key, value in zip(keys, items[1::2], strict=True)}


def _key(key: Json) -> str:
    """Return the text of a key: ``200:`` means the same as ``"200":``."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _scalar(event: Any) -> Json:
    text: str = event.value
    if not event.implicit[0]:  # the scalar is quoted or tagged, and JSON has no other tags than text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


DocumentFormat: TypeAlias = Literal["json", "jsonl", "yaml"]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a file that cannot be used, and why. Lines are counted from 1."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The values of the valid lines, and the invalid lines."""

    values: list[Json]
    bad: tuple[BadLine, ...]


def parse_document(text: str, document_format: DocumentFormat | None, origin: str) -> Json:
    """Return the value; JSONL gives the list of its lines' values. Without a format, it is recognised from the text.

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
    """Recognise the format: JSON begins with a bracket, and is JSONL if its first line is complete and others follow;
    everything else is YAML.
    """
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
    """Read the valid lines of JSON lines; empty lines are skipped."""
    values: list[Json] = []
    bad: list[BadLine] = []
    # Splitlines would also split at U+2028, which JSON strings may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except RecursionError:
                bad.append(BadLine(number, "it is nested too deeply"))
            except ValueError as error:
                bad.append(BadLine(number, not_json(error)))
    return JsonLines(values, tuple(bad))


def not_json(error: ValueError) -> str:
    """Describe the fault in a line that `json.loads` has refused; the position is the one in the line."""
    said = f"{error.msg} (character {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"it is not JSON: {said}"


def _every_line(lines: JsonLines) -> list[Json]:
    for first in lines.bad[:1]:
        raise ValueError(f"line {first.line}: {first.reason}")
    return lines.values


_FORMATS: Mapping[str, DocumentFormat] = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip

SUFFIXES = frozenset(_FORMATS)
MAX_BYTES = 200_000_000  # the file is read whole into memory, and takes several times as much once parsed


def read_document(path: Path) -> Json:
    """Return the file's value; a JSONL file gives the list of its lines' values.

    Raises SourceError, naming the file, if it cannot be read, is too large, or is malformed.
    """
    return document_in(read_bytes(path), path)


def document_in(content: bytes, path: Path) -> Json:
    """Like `read_document` if *content* were at *path*."""
    return parse_document(_decoded(content, path), _FORMATS.get(path.suffix.lower(), "json"), str(path))


def is_json_lines(path: Path) -> bool:
    return _FORMATS.get(path.suffix.lower()) == "jsonl"


def read_json_lines(path: Path) -> JsonLines:
    """Return the values of the valid lines, and the invalid lines.

    Raises SourceError, naming the file, if it cannot be read, is too large, or has lines but no valid one.
    """
    lines = parse_lines(_decoded(read_bytes(path), path))
    if lines.bad and not lines.values:
        first = lines.bad[0]
        raise SourceError(f"{path} is malformed: line {first.line}: {first.reason}")
    return lines


def read_bytes(path: Path) -> bytes:
    """The whole file. Raises SourceError, naming it, if it cannot be read or is too large."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SourceError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} are allowed")
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
