"""`ToolParam`: what a model is told of one parameter, written beside its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolsearch.errors import BadToolError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class ToolParam:
    """Goes into ``Annotated``, on a parameter or on a field of a model, dataclass or TypedDict at any depth.

    description  before a bare string in the same ``Annotated``, a pydantic Field's, and the docstring's
    required     before a default and before Optional, which both make a parameter optional. A parameter that is
                 optional, has no default and is left out is None. On a field False is refused, since an object
                 cannot be made without it: give the field a default instead.
    """

    description: str = ""
    required: bool | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if self.required is False:  # parameters never come here: their ToolParam is taken off first
            raise BadToolError(
                "ToolParam(required=False) is for parameters; a field of a class is optional by its default, "
                "one of a TypedDict by NotRequired"
            )
        return handler(source)

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = dict(handler(core_schema))
        if self.description:
            schema["description"] = self.description
        return schema
