"""Sections of settings, and the description of each setting for people.

Names may be written in camelCase, and an unknown name is an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, SecretStr, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined
from typing_extensions import is_typeddict

from toolsearch.documents.json_values import is_object
from toolsearch.setting_types import DURATION
from toolsearch.tools.naming import did_you_mean

NAMED: Final = "<name>"  # stands for a name of the user's in the path of a setting


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of *section*. *path* is its name behind the names of the sections that it is in."""

    section: type[Any]
    path: tuple[str, ...]
    field: FieldInfo

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def description(self) -> str:
        return self.field.description or ""

    @property
    def values(self) -> str:
        """The possible values, in words."""
        return "duration" if DURATION in self.field.metadata else _values(self.field.annotation)

    @property
    def default(self) -> str:
        default = self.field.get_default(call_default_factory=True)
        if default is PydanticUndefined:
            return "required"
        if default is None or isinstance(default, bool):
            return str(default).lower()
        if isinstance(default, Mapping | frozenset | tuple):
            return ", ".join(map(str, cast("Iterable[object]", default)))
        return str(default)

    @property
    def is_table(self) -> bool:
        return get_origin(self.field.annotation) is Mapping


def settings_in(section: type[Any], path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting of *section* and of the sections in it, in order; see `NAMED`."""
    for name, field in fields_of(section).items():
        below, inner = section_of(field.annotation), (*path, name)
        if below is None:
            yield Setting(section, inner, field)
        else:
            yield from settings_in(below, (*inner, NAMED) if get_origin(field.annotation) is Mapping else inner)


def fields_of(section: type[Any]) -> Mapping[str, FieldInfo]:
    """The settings of a section by name. Options of a dataclass without a description are for code alone."""
    if issubclass(section, BaseModel):
        return section.model_fields
    return _fields_of_dataclass(cast("Hashable", section))


@cache  # reading the annotations of a dataclass takes a millisecond
def _fields_of_dataclass(section: Any) -> Mapping[str, FieldInfo]:
    hints = get_type_hints(section, include_extras=True)
    found = {field.name: FieldInfo.from_annotated_attribute(hints[field.name], field) for field in fields(section)}
    return {name: field for name, field in found.items() if field.description is not None}


def section_of(annotation: Any) -> type[Any] | None:
    """The section that is the type of a setting, one of its types, or the type of its items; None for a plain value."""
    if isinstance(annotation, type):
        given = cast("type[Any]", annotation)
        if issubclass(given, BaseModel) or is_dataclass(given):
            return given
    return next(filter(None, map(section_of, get_args(annotation))), None)


_WORDS = {
    bool: "true, false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    SecretStr: "text",
    NoneType: "none",
    Any: "any value",
}


def _values(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Literal:
        return ", ".join(arguments)
    if origin is Annotated:
        return "duration" if DURATION in arguments[1:] else _values(arguments[0])
    if is_typeddict(annotation):
        return "table"
    if origin in (frozenset, tuple):
        return "list"
    if origin is Mapping:
        return f"table of {_values(arguments[1])}"
    return " or ".join(map(_values, arguments))


UNKNOWN_SETTING: Final = "unknown_setting"  # named like pydantic's kinds of errors


class SettingsSection(BaseModel):
    """A section. Fields that are dataclasses of options are sections, too: they get the same configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _of_known_names(cls, given: object) -> object:
        """Raises PydanticCustomError for a name that the section does not have, with the names that are near it."""
        _require_known(given, cls.model_fields)
        for name, field in cls.model_fields.items():
            if is_object(given) and is_dataclass(field.annotation):
                inner = given.get(to_camel(name), given.get(name))
                _require_known(inner, fields_of(cast("type[Any]", field.annotation)), f"{to_camel(name)}.")
        return given


def _require_known(given: object, fields: Iterable[str], place: str = "") -> None:
    names = list(map(to_camel, fields))
    for name in given if is_object(given) else ():
        if name not in names and name not in fields:
            hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
            raise PydanticCustomError(
                UNKNOWN_SETTING, "there is no such setting{hint}", {"name": f"{place}{name}", "hint": hint}
            )
