"""Settings: one frozen object, read once from the environment and a TOML file, and passed down from there.

In the environment a setting is ``TOOLSEARCH_<SECTION>__<NAME>``. In the file it is ``name`` in the table
``[toolsearch.section]``, or ``[tool.toolsearch.section]`` of a pyproject.toml. The environment wins.

The text ``none`` stands for None, a duration is ``30m``, ``1h30m``, ``500ms`` or a number of seconds, a list is ``a,b``
or JSON, and a table is JSON. An entry of a table can be given by itself:
``TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__<tool>``. `Settings.documented` lists all settings.

If code has an object of options for a section, such as `Budget` or `CallLimits`, the section is that object. A setting
has the name of the option in code. An option without a description is for code alone.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Self, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError
from pydantic.alias_generators import to_snake

from toolsearch.calling.limits import CallLimits, CallOptions
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.environment import NESTED, NO_SETTINGS, PREFIX
from toolsearch.errors import BadSettingError
from toolsearch.sessions.options import SearchOptions
from toolsearch.sessions.session_eviction import MAX_SESSIONS
from toolsearch.setting_sections import NAMED, Setting, SettingsSection, settings_in
from toolsearch.setting_types import Count, Folder, Seconds, StrategyName
from toolsearch_indexes.encoders.opening import AUTO

_TABLE = "toolsearch"
_MOST_NEAR = 3  # suggested names
_PYPROJECT = "pyproject.toml"  # our table is below [tool] in this file
SettingsT = TypeVar("SettingsT", bound=BaseModel)


class GivenSettings:
    """The values that were given so far, where each came from, and the problems that were found."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        self._settings = {setting.name: setting for setting in settings}
        self._values: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._given_here: set[str] = set()  # names that the source being read has given
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
            elif (inner := self._inner(name, entry)) is not None:
                key, field = entry.lower().split(NESTED)
                named = self._table(name)
                self._values[name] = {**named, key: {**named.get(key, {}), field: _read(text, inner)}}
                self._origins[f"{name}.{key}.{field}"] = variable
            else:
                self._unknown(f"{name}.{entry}", variable, "the environment")

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Take over *values* by the names of their settings. None means that a value is not given."""
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
        if setting is None and not self._holds_sections(name):
            self._unknown(name, origin, "")
            return
        if name in self._given_here:
            self._problems.append(f"{self._origins[name]} and {origin} are the same setting; give it once")
        self._given_here.add(name)
        try:
            self._values[name] = _read(value, setting) if setting else _table_in(value)
        except json.JSONDecodeError as error:
            self._problems.append(f"{origin} is not JSON: {error}")
        self._origins[name] = origin

    def _holds_sections(self, name: str) -> bool:
        """Whether *name* is a table of sections, which users name."""
        return any(each.startswith(f"{name}.{NAMED}.") for each in self._settings)

    def _inner(self, name: str, entry: str) -> Setting | None:
        """The setting that a variable means with *entry*, such as ``MAIL__PER_MINUTE``, of a table of sections."""
        _, _, field = entry.partition(NESTED)
        return self._settings.get(f"{name}.{NAMED}.{field.lower()}")

    def _table(self, name: str) -> dict[str, Any]:
        table = self._values.get(name, {})
        return cast("dict[str, Any]", table) if isinstance(table, dict) else {}

    def _unknown(self, name: str, origin: str, place: str) -> None:
        where = f" in {place}" if place else ""
        self._problems.append(f"there is no setting {origin}{where}; {self._hint(name)}")

    def _hint(self, name: str) -> str:
        """The names similar to *name*, or those of its section, or the sections."""
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
            if problem["type"] == "missing":
                yield f"the setting {'.'.join(place)} is missing"
                continue
            yield f"{origin} cannot be {problem['input']!r}: {problem['msg'].removeprefix('Value error, ')}"


def _prefixes(place: Sequence[str]) -> Iterator[str]:
    """``a.b.c``, ``a.b``, ``a``"""
    for end in range(len(place), 0, -1):
        yield ".".join(place[:end])


def _read(value: Any, setting: Setting) -> Any:
    """Return *value*. A text becomes None, a list or a table if the setting has such a type."""
    if not isinstance(value, str):
        return {key: _without_none(entry) for key, entry in value.items()} if setting.is_table else value
    text, annotation = value.strip(), setting.field.annotation
    if setting.is_table:
        return json.loads(text)
    if get_origin(annotation) in (frozenset, tuple):
        return json.loads(text) if text.startswith("[") else [part.strip() for part in text.split(",") if part.strip()]
    return _without_none(value) if NoneType in get_args(annotation) else value


def _table_in(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _without_none(value: Any) -> Any:
    """TOML and the environment have no null."""
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


__all__ = [
    "AdvisorSettings",
    "EvictionSettings",
    "IndexSettings",
    "RankingSettings",
    "SettingRow",
    "Settings",
    "TelemetrySettings",
]


class RankingSettings(SettingsSection):
    """How tools are searched."""

    strategy: StrategyName = Field(
        default="auto", description="How tools are ranked; auto: hybrid if there is an encoder, else keyword."
    )
    encoder: str | None = Field(
        default=AUTO,
        description="The encoder: auto (transformer if installed, else built-in), built-in, transformer, multilingual, "
        "a folder, or a sentence-transformers model. Hybrid and semantic ranking need an encoder.",
    )
    reader: str = Field(
        default=AUTO,
        description="The model that judges the first tools of a search: auto (the installed one, if any), none, or a "
        "folder.",
    )
    requests: bool = Field(
        default=True,
        description="Also find widely used tools by example requests that come with the package.",
    )
    requests_files: tuple[Path, ...] = Field(
        default=(),
        description="Files of example requests for your tools, from `toolsearch enrich`. They come before those of "
        "the package.",
    )


class IndexSettings(RankingSettings):
    """How tools are searched, and where the index is kept."""

    index_dir: Folder | None = Field(
        default=None, description="The folder that keeps the index between starts; none: memory only."
    )


class AdvisorSettings(SettingsSection):
    """Tool search in the chat client."""

    enabled: bool = Field(default=False, description="Give the model a search tool instead of all tools.")
    system_suffix: str | None = Field(
        default=None, description="Text added to the system message; none: a short default text; empty: no text."
    )
    search_first: bool = Field(default=False, description="Search with the user's message before the model is asked.")


class EvictionSettings(SettingsSection):
    """When sessions are evicted from memory."""

    max_sessions: Count = Field(
        default=MAX_SESSIONS, description="Sessions in memory; the least recently used one is evicted first."
    )
    ttl_s: Seconds | None = Field(default=None, description="How long a session may be idle; none: no limit.")


class TelemetrySettings(SettingsSection):
    """The data recorded for OpenTelemetry, if your program sets it up."""

    capture_content: bool = Field(default=False, description="Also record queries, arguments, results and messages.")
    capture_definitions: bool = Field(default=False, description="Also record the descriptions and schemas of tools.")


class Settings(SettingsSection):
    """Everything that an operator may change. No secret is among it, so that it may be shown and logged."""

    index: IndexSettings = IndexSettings()
    search: SearchOptions = SearchOptions()
    advisor: AdvisorSettings = AdvisorSettings()
    eviction: EvictionSettings = EvictionSettings()
    budget: Budget = Budget()
    pass_through: PassThrough = PassThrough()
    calling: CallOptions = CallOptions()
    limits: CallLimits = CallLimits()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        file: str | Path | None = None,
        *,
        overrides: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read the settings. Those that neither *environ* nor *file* names have their defaults.

        *overrides*, by section.name, win over both; they come from the options of a command. None leaves a setting as
        it is.

        Raises BadSettingError, with every problem at once: unknown names, with similar ones, and values that cannot be
        used. It is also raised for a file that cannot be read.
        """
        given = GivenSettings(settings_in(cls))
        if file is not None:
            given.add_file(Path(file))
        given.add_environment(environ)
        given.add_values(overrides or {})
        return given.build(cls)

    @classmethod
    def documented(cls) -> list[SettingRow]:
        """Describe every setting, in order."""
        return [
            SettingRow(
                name=setting.name,
                variable=PREFIX + setting.name.replace(".", NESTED).upper(),
                values=setting.values,
                default=setting.default,
                description=setting.description,
            )
            for setting in settings_in(cls)
        ]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as text for people. *name* is section.name, as in the file."""

    name: str
    variable: str
    values: str
    default: str
    description: str
