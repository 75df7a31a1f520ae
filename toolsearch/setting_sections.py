"""What every section of a configuration has in common: names as JSON writes them, and no name that means nothing."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from toolsearch.documents.json_values import is_object
from toolsearch.tools.naming import did_you_mean

UNKNOWN_SETTING: Final = "unknown_setting"  # as pydantic's kinds of errors are named


class SettingsSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _of_known_names(cls, given: object) -> object:
        """Raises PydanticCustomError for a name that the section does not have, with those that it may be a slip of."""
        names = [to_camel(name) for name in cls.model_fields]
        known = {*names, *cls.model_fields}
        for name in given if is_object(given) else ():
            if name not in known:
                hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
                raise PydanticCustomError(
                    UNKNOWN_SETTING, "there is no such setting{hint}", {"name": name, "hint": hint}
                )
        return given
