"""Reads settings by name, from a file, the environment and options, and reports all problems with them at once."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from toolsearch.environment import NESTED, NO_SETTINGS, PREFIX
from toolsearch.errors import BadSettingError
from toolsearch.setting_fields import Setting

_TABLE = "toolsearch"
_MOST_NEAR = 3  # names that are suggested
_PYPROJECT = "pyproject.toml"  # where the table is below [tool], as for every program

SettingsT = TypeVar("SettingsT", bound=BaseModel)


class GivenSettings:
    """The values that were given so far, where each came from, and the problems that were found."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        self._settings = {setting.name: setting for setting in settings}
        self._values: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._given_here: set[str] = set()  # names that the source that is being read has given
        self._problems: list[str] = []

    def add_file(self, path: Path) -> None:
        self._given_here.clear()
        try:
            document = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise BadSettingError(f"the settings in {path} cannot be read: {reason}") from error
        holder: dict[str, Any] = document.get("tool", {}) if path.name == _PYPROJECT else document
        table = holder.get(_TABLE, {})
        if document and _TABLE not in holder and path.name != _PYPROJECT:
            raise BadSettingError(f"{path} has no settings: write [{_TABLE}.search] and so on above them")
        if not isinstance(table, dict):
            raise BadSettingError(f"{_TABLE!r} in {path} must be a table: write [{_TABLE}.search] and so on")
        for section, entries in cast("dict[str, Any]", table).items():
            if not isinstance(entries, dict):
                self._unknown(section, section, str(path))
                continue
            for key, value in cast("dict[str, Any]", entries).items():
                name, origin = f"{section}.{key}", f"{section}.{key} in {path}"
                self._add(name, value, origin)

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Read the variables in the order of their names, so that whole tables come before their entries."""
        self._given_here.clear()
        for variable in sorted(environ):
            if not variable.upper().startswith(PREFIX) or variable in NO_SETTINGS:
                continue
            section, _, rest = variable[len(PREFIX) :].partition(NESTED)
            field, _, entry = rest.partition(NESTED)
            name = f"{section}.{field}".lower().rstrip(".")
            text = environ[variable]
            if not entry:
                self._add(name, text, variable)
            elif name in self._settings and self._settings[name].is_table:
                self._values[name] = {**self._table(name), entry: _without_none(text)}
                self._origins[f"{name}.{entry}"] = variable
            else:
                self._unknown(f"{name}.{entry}", variable, "the environment")

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Take *values* by the names of their settings; one that is None is not given."""
        for name, value in values.items():
            if value is not None:
                self._given_here.discard(name)
                self._add(name, value, name)

    def build(self, settings: type[SettingsT]) -> SettingsT:
        """Raises BadSettingError."""
        nested: dict[str, dict[str, Any]] = {}
        for name, value in self._values.items():
            section, _, field = name.partition(".")
            nested.setdefault(section, {})[field] = value
        try:
            made = settings.model_validate(nested)
        except ValidationError as error:
            raise BadSettingError("; ".join([*self._problems, *self._explained(error)])) from error
        if self._problems:
            raise BadSettingError("; ".join(self._problems))
        return made

    def _add(self, name: str, value: Any, origin: str) -> None:
        setting = self._settings.get(name)
        if setting is None:
            self._unknown(name, origin, "")
            return
        if name in self._given_here:
            self._problems.append(f"{self._origins[name]} and {origin} are the same setting; give it once")
        self._given_here.add(name)
        try:
            self._values[name] = _read(value, setting)
        except json.JSONDecodeError as error:
            self._problems.append(f"{origin} is not JSON: {error}")
        self._origins[name] = origin

    def _table(self, name: str) -> dict[str, Any]:
        table = self._values.get(name, {})
        return cast("dict[str, Any]", table) if isinstance(table, dict) else {}

    def _unknown(self, name: str, origin: str, place: str) -> None:
        where = f" in {place}" if place else ""
        self._problems.append(f"there is no setting {origin}{where}; {self._hint(name)}")

    def _hint(self, name: str) -> str:
        """The names that are near *name*, else those of its section, else the sections."""
        near = difflib.get_close_matches(name, self._settings, n=_MOST_NEAR, cutoff=0.6)
        if near:
            return f"did you mean {' or '.join(near)}?"
        section = name.partition(".")[0]
        inside = [each for each in self._settings if each.startswith(f"{section}.")]
        if inside:
            return f"there are {', '.join(inside)}"
        sections = dict.fromkeys(each.partition(".")[0] for each in self._settings)
        return f"the sections are {', '.join(sections)}; docs/settings.md lists the settings of each"

    def _explained(self, error: ValidationError) -> Iterator[str]:
        for problem in error.errors(include_url=False):
            section, field, *rest = [*map(str, problem["loc"]), "", ""]
            place = list(filter(None, [to_snake(section), to_snake(field), *rest]))
            origin = next((self._origins[key] for key in _prefixes(place) if key in self._origins), ".".join(place))
            yield f"{origin} cannot be {problem['input']!r}: {problem['msg'].removeprefix('Value error, ')}"


def _prefixes(place: Sequence[str]) -> Iterator[str]:
    """``a.b.c``, ``a.b``, ``a``"""
    for end in range(len(place), 0, -1):
        yield ".".join(place[:end])


def _read(value: Any, setting: Setting) -> Any:
    """Return *value* with text made into None, a list or a table where one is wanted."""
    if not isinstance(value, str):
        return {key: _without_none(entry) for key, entry in value.items()} if setting.is_table else value
    text, annotation = value.strip(), setting.field.annotation
    if setting.is_table:
        return json.loads(text)
    if get_origin(annotation) in (frozenset, tuple):
        return json.loads(text) if text.startswith("[") else [part.strip() for part in text.split(",") if part.strip()]
    return _without_none(value) if NoneType in get_args(annotation) else value


def _without_none(value: Any) -> Any:
    """TOML and the environment have no null."""
    return None if isinstance(value, str) and value.strip().lower() == "none" else value
