"""`ToolParam`: what a model is told of one parameter, written beside its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


REQUIRED = "x-toolsearch-required"  # on the schema of a field, until the object around it is known


@dataclass(frozen=True, slots=True)
class ToolParam:
    """Goes into ``Annotated``, on a parameter or on a field of a model, dataclass or TypedDict at any depth.

    description  before a bare string in the same ``Annotated``, a pydantic Field's, and the docstring's
    required     before a default and before Optional, which both make a parameter optional. What is optional, has no
                 default and is left out is None. A field of a TypedDict needs `NotRequired` for False.
    """

    description: str = ""
    required: bool | None = None

    # Pydantic asks for fields only: of a parameter, its ToolParam is taken off first.

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if self.required is not False:
            return schema
        from pydantic_core.core_schema import with_default_schema

        return with_default_schema(schema, default=None)

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = dict(handler(core_schema))
        if self.required is False:
            schema.pop("default", None)  # None stands for nothing, and need not be of the field's type
        if self.required:
            schema[REQUIRED] = True
        if self.description:
            schema["description"] = self.description
        return schema
