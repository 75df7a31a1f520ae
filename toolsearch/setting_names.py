"""Renamed settings: a file that was written for an older version goes on working."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json, JsonObject


def with_current_names(section: JsonObject, old_names: Mapping[str, str], place: str) -> tuple[JsonObject, list[str]]:
    """Return *section* with each old name, ``part.name``, replaced by the name of now, and a note for each.

    *place* is what *section* is called. Raises BadSettingError where both names of one setting are given.
    """
    parts: dict[str, Json] = dict(section)
    notes: list[str] = []
    for old, current in old_names.items():
        (part, name), (new_part, new_name) = old.split("."), current.split(".")
        given = parts.get(part)
        if not is_object(given):
            continue
        for written in [key for key in given if to_camel(key) == name]:
            parts[part] = {key: value for key, value in given.items() if key != written}
            place_of_new = next((key for key in parts if to_camel(key) == new_part), new_part)
            target = parts.get(place_of_new, {})
            if not is_object(target) or any(to_camel(key) == new_name for key in target):
                raise BadSettingError(f"{place}.{old} is called {place}.{current} now: give it once, under that name")
            parts[place_of_new] = {**target, new_name: given[written]}
            notes.append(f"{place}.{old} is called {place}.{current} now")
    return parts, notes
