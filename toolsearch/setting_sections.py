"""The base of every section of settings: names may be written in camelCase, and an unknown name is an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from toolsearch.documents.json_values import is_object
from toolsearch.setting_fields import fields_of
from toolsearch.tools.naming import did_you_mean

UNKNOWN_SETTING: Final = "unknown_setting"  # as pydantic's kinds of errors are named


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
