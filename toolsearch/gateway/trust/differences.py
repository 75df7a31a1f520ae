"""Where two definitions differ, for the person who has to approve the second."""

from __future__ import annotations

import difflib
import json

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.scanning.texts import printable
from toolsearch.tools.json_types import Json, JsonObject

_MAX_PLACES = 20


def definition_diff(before: JsonObject | None, now: JsonObject) -> list[str]:
    """The lines of *now* as JSON, or how they differ from *before*; in ASCII, so that all that is hidden is seen."""
    lines = _lines(now)
    if before is None:
        return lines
    return list(difflib.unified_diff(_lines(before), lines, "approved", "now", lineterm=""))[2:]


def _lines(entry: JsonObject) -> list[str]:
    return json.dumps(entry, indent=2, sort_keys=True).splitlines()


def changed_places(before: Json, after: Json) -> tuple[str, ...]:
    """The places, such as ``inputSchema.properties.path``, sorted, with a sign: ``+`` new, ``-`` gone, ``~`` another.

    At most 20; then the last says how many more there are.
    """
    places = sorted(_differences(before, after), key=lambda sign_and_place: sign_and_place[1])
    shown = tuple(f"{sign} {printable(place)}" for sign, place in places[:_MAX_PLACES])
    more = len(places) - len(shown)
    return (*shown, f"... and {more} more") if more else shown


def _differences(before: Json, after: Json) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, Json, Json]] = [("", before, after)]
    while stack:
        place, one, other = stack.pop()
        if is_object(one) and is_object(other):
            for key in one.keys() | other.keys():
                inner = f"{place}.{key}" if place else key
                if key not in other:
                    found.append(("-", inner))
                elif key not in one:
                    found.append(("+", inner))
                else:
                    stack.append((inner, one[key], other[key]))
        elif is_list(one) and is_list(other) and len(one) == len(other):
            stack += [(f"{place}[{index}]", *pair) for index, pair in enumerate(zip(one, other, strict=True))]
        elif one != other or isinstance(one, bool) != isinstance(other, bool):  # in Python, 1 == True
            found.append(("~", place))
    return found
