"""The rules of model APIs for a tool's definition: limits, names of properties, patterns, references.

If one definition breaks a rule, they refuse the whole request.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from toolsearch.documents.json_values import as_texts, is_list, name_of_step
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.request_parts import is_plain_object

KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")  # a whole property name
LONGEST_KEY: Final = 64
MOST_LEVELS: Final = 60  # depth of nested schemas; a catalog refuses deeper tools
MOST_SCHEMAS: Final = 20_000  # most schemas in one tool
LONGEST_DESCRIPTION: Final[Mapping[str, int]] = {"openai": 1_024, "openai-responses": 1_024}


"""The longest description by format, in UTF-16 units, which are never fewer than characters. A missing format has no
bound.
"""


_OF_NAMES: Final = frozenset({"properties", "dependencies", "dependentRequired", "dependentSchemas"})
_WORDS: Final = (("<=", "_lte"), (">=", "_gte"), ("!=", "_ne"), ("<", "_lt"), (">", "_gt"), ("=", "_eq"), ("!", "_not"))
_ILLEGAL_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_ROOM_FOR_NUMBER: Final = 6
_READ_CHARACTERS: Final = 1_000  # characters of a name that are read; more would not fit anyway


def is_sendable_key(name: object) -> bool:
    return isinstance(name, str) and KEY.fullmatch(name) is not None


def sendable_keys(schema: JsonObject) -> dict[str, str]:
    """Map each property name in *schema* that cannot be sent to the name to send instead.

    Each new name is used once, and no property has it already. The result does not depend on the order of the schema.
    """
    names = set(_property_names(schema))
    refused = sorted(name for name in names if not is_sendable_key(name))
    free = FreeKeys(names)
    return {name: free.name(name) for name in refused}


class FreeKeys:
    """Makes sendable names; each is made once and none is in *taken*."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """*wanted* itself if it can be sent and is free, else a similar name."""
        base = wanted if is_sendable_key(wanted) else readable_key(wanted)
        candidate = base
        while candidate in self._taken:
            number = self._numbers[base] = self._numbers.get(base, 1) + 1
            candidate = f"{base[: LONGEST_KEY - _ROOM_FOR_NUMBER]}_{number}"
        self._taken.add(candidate)
        return candidate


def readable_key(name: str) -> str:
    """``StartTime<`` gives ``StartTime_lt``, ``$filter`` gives ``filter``, and a name without letters gives
    ``parameter``.
    """
    text = "".join(c for c in unicodedata.normalize("NFKD", name[:_READ_CHARACTERS]) if not unicodedata.combining(c))
    for sign, word in _WORDS:
        text = text.replace(sign, word)
    text = _ILLEGAL_CHARACTERS.sub("_", text).strip("_.-")
    return text[:LONGEST_KEY].rstrip("_.-") or "parameter"


def _property_names(schema: JsonObject) -> Iterator[str]:
    """All property names, and a few other keys. A loop is used because the schema's depth is not checked yet."""
    waiting: list[Json] = [schema]
    while waiting:
        value = waiting.pop()
        if is_plain_object(value):
            for keyword, each in value.items():
                if keyword in _OF_NAMES and is_plain_object(each):
                    for name, depending in each.items():
                        yield from as_texts([name])
                        yield from as_texts(depending)
                elif keyword == "required":
                    yield from as_texts(each)
                if isinstance(each, (dict, list)):
                    waiting.append(each)
        else:
            waiting += [each for each in value if isinstance(each, (dict, list))]


_MOST_CHARACTERS: Final = 2_000
_MAX_MEMORY_BYTES: Final = 1 << 20
_CODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")

_UNCOMMON_SYNTAX: Final = (
    re.compile(  # syntax that only some regex engines know, such as \p{L}, (?i), [[:alpha:]] and a++
        r"\\[pPzZAQECXRGKhHNu]|\(\?[^:]|\[\[:|[+*?}]\+"
    )
)


@lru_cache(maxsize=4_096)
def is_common_pattern(pattern: str) -> bool:
    if len(pattern) > _MOST_CHARACTERS:
        return False
    plain = _CODE.sub(r"\\x{\1}", pattern.replace(r"\\", "--"))
    if _UNCOMMON_SYNTAX.search(plain):
        return False
    import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

    re2: Any = untyped_re2
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        re2.compile(plain, options)
    except (re2.error, ValueError):
        return False
    return True


Steps: TypeAlias = tuple[str, ...]  # path from the root to a place in the schema
_DEFINITIONS = ("$defs", "definitions")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_IDS = ("$id", "id")


class References:
    """The schemas under ``$defs`` or ``definitions`` at the root, and all other places that references lead to."""

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
        """Each name with its definition. Rewriting a definition may add others, which come later."""
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
        return (*base, *(name_of_step(unquote(step)) for step in fragment.split("/")[1:]))

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
        """The places of all anchors (``#name``) and ``$id``. A loop is used because the schema's depth is not checked
        yet.
        """
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
