"""YAML to the value that the same document would have as JSON, without recursion and within bounds.

PyYAML's own loaders follow YAML 1.1, where ``on`` is true and ``2020-01-01`` a date; its fast one dies of deep nesting,
and its values may share one object a billion times. So only its parser is used, and the values are built here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolsearch.tools.json_types import Json

MAX_NODES = 5_000_000  # with every alias counted as what it stands for
MAX_DEPTH = 500

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")  # 007 stays text, as an identifier should
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

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where PyYAML has it: ten times faster
    yield from yaml.parse(text, loader)


class _Builder:
    """Builds values bottom up: a stack of the containers that are open, each with its key that waits for a value."""

    def __init__(self) -> None:
        self._anchors: dict[str, tuple[Json, int]] = {}  # value and nodes in it
        self._nodes = 0

    def build(self, events: Iterator[Any]) -> Json:
        import yaml

        open_items: list[list[Json]] = [[]]  # the children of each open container, keys and values in turn
        started: list[tuple[str | None, int]] = []  # its anchor, and the nodes seen before it
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
            raise ValueError(f"the alias *{anchor} stands for nothing, or for what it is part of")
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
    """Return the text of a key: ``200:`` means what ``"200":`` does."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _scalar(event: Any) -> Json:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or tagged by hand: there are no other tags in JSON
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
