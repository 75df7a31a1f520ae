"""The references within one schema, and the names under ``$defs`` that they are sent by."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TypeAlias
from urllib.parse import unquote

from toolsearch.documents.json_values import is_list
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.json_copies import is_plain_object
from toolsearch.wire.key_names import FreeKeys

Steps: TypeAlias = tuple[str, ...]  # from the root to a place in the schema

_DEFINITIONS = ("$defs", "definitions")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_IDS = ("$id", "id")


class References:
    """What stands under ``$defs`` or ``definitions`` at the root, and any other place that a reference leads to."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._names: dict[Steps, str] = {}
        self._free = FreeKeys()
        self._waiting: deque[tuple[str, Json]] = deque()
        for container in _DEFINITIONS:
            definitions = root.get(container)
            for key, target in definitions.items() if is_plain_object(definitions) else ():
                self._add((container, str(key)), target)

    def sent(self, reference: str) -> str | None:
        """The reference to send in the place of *reference*; None if it leads nowhere in the schema."""
        steps = self._steps(reference)
        if not steps:
            return None if steps is None else "#"
        if steps not in self._names:
            target = self._at(steps)
            if not isinstance(target, (dict, bool)):
                return None
            self._add(steps, target)
        return f"#/$defs/{self._names[steps]}"

    def target(self, reference: str) -> JsonObject | None:
        """The schema that *reference* leads to."""
        steps = self._steps(reference)
        found = None if steps is None else self._at(steps)
        return found if is_plain_object(found) else None

    def definitions(self) -> Iterator[tuple[str, Json]]:
        """Each name and what is defined by it. Rewriting a definition may add others, which come later."""
        while self._waiting:
            yield self._waiting.popleft()

    def _add(self, steps: Steps, target: Json) -> None:
        self._names[steps] = name = self._free.name(steps[-1])
        self._waiting.append((name, target))

    def _steps(self, reference: str) -> Steps | None:
        address, _, fragment = reference.partition("#")
        base = self._places.get(address) if address else ()
        if base is None:
            return None
        if fragment and not fragment.startswith("/"):
            return self._places.get(f"#{fragment}")
        return (*base, *(unquote(step).replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:]))

    def _at(self, steps: Steps) -> Json:
        found: Json = self._root
        for step in steps:
            if is_plain_object(found):
                found = found.get(step)
            elif is_list(found) and step.isdecimal() and len(step) < 7 and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found

    @cached_property
    def _places(self) -> Mapping[str, Steps]:
        """Where each anchor (``#name``) and each ``$id`` stands. A loop, as nobody has bounded the schema yet."""
        places: dict[str, Steps] = {}
        waiting: list[tuple[Steps, Json]] = [((), self._root)]
        while waiting:
            steps, value = waiting.pop()
            if is_plain_object(value):
                for keyword in _ANCHORS:
                    if isinstance(name := value.get(keyword), str):
                        places.setdefault(f"#{name}", steps)
                for keyword in _IDS:
                    if isinstance(name := value.get(keyword), str):
                        places.setdefault(name if name.startswith("#") else name.rstrip("#"), steps)
                waiting += [((*steps, str(key)), each) for key, each in value.items()]
            elif is_list(value):
                waiting += [((*steps, str(at)), each) for at, each in enumerate(value)]
        return places
