"""Every setting of a configuration, one by one, and how each is described to people.

A section is a pydantic model, or the dataclass of options that its settings make: what it is made of, its defaults and
its descriptions are written there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from toolsearch.setting_values import DURATION


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
        """What a value may be, in words."""
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
    """Every setting of *section* and of the sections in it, in order; ``<name>`` stands for a name of the user's."""
    for name, field in fields_of(section).items():
        below, inner = section_of(field.annotation), (*path, name)
        if below is None:
            yield Setting(section, inner, field)
        else:
            yield from settings_in(below, (*inner, "<name>") if get_origin(field.annotation) is Mapping else inner)


def fields_of(section: type[Any]) -> Mapping[str, FieldInfo]:
    if issubclass(section, BaseModel):
        return section.model_fields
    return _fields_of_dataclass(cast("Hashable", section))


@cache  # to read the annotations of a dataclass takes a millisecond
def _fields_of_dataclass(section: Any) -> Mapping[str, FieldInfo]:
    hints = get_type_hints(section, include_extras=True)
    return {field.name: FieldInfo.from_annotated_attribute(hints[field.name], field) for field in fields(section)}


def section_of(annotation: Any) -> type[Any] | None:
    """The section that a setting of that type is, may be, or maps names to; None if it is a plain value."""
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
}


def _values(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Literal:
        return ", ".join(arguments)
    if origin is Annotated:
        return "duration" if DURATION in arguments[1:] else _values(arguments[0])
    if origin in (frozenset, tuple):
        return "list"
    if origin is Mapping:
        return f"table of {_values(arguments[1])}"
    return " or ".join(map(_values, arguments))
