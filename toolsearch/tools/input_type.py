"""Types whose values are made of JSON: models, dataclasses, TypedDicts, and whatever else pydantic knows."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, SchemaError, to_json

from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.json_schema import schema_of
from toolsearch.tools.json_types import Json, JsonObject

UNUSABLE_TYPE = (PydanticUserError, SchemaError)  # what pydantic raises for a type that it makes no schema of

_MAX_ERRORS_TOLD = 5


class JsonType:
    """A type and the JSON Schema of its values.

    Raises BadToolError, with the reason, for a type that JSON cannot carry; *role* is what it is to the reader.
    """

    def __init__(self, python_type: Any, *, role: str = "type", closed: bool = True) -> None:
        self.name = str(getattr(python_type, "__name__", python_type))
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(python_type)
            schema = schema_of(self._adapter, closed=closed)
        except UNUSABLE_TYPE as error:
            raise BadToolError(
                f"the {role} {self.name} is one that JSON cannot carry: {why_unusable(error)}"
            ) from error
        self.schema: JsonObject = _with_root_inline(schema)

    def parse(self, value: JsonObject, *, whole: str = "arguments") -> Any:
        """Return *value* as one of the type.

        Raises BadArgumentsError, which repeats nothing of *value* and calls it *whole*.
        """
        try:
            return self._adapter.validate_json(json_bytes(value))
        except ValidationError as error:
            raise BadArgumentsError(explain(error, whole=whole)) from None  # pydantic's own text repeats the values


class InputType(JsonType):
    """A type whose values are made of a call's arguments. Raises BadToolError for one that is not an object, too."""

    def __init__(self, python_type: Any) -> None:
        super().__init__(python_type, role="input type")
        if self.schema.get("type") != "object":
            raise BadToolError(
                f"the input type {self.name} is not a JSON object, which arguments always are; "
                "make it a field of a dataclass, or define the tool with @tool"
            )
        self.schema = {"properties": {}, **self.schema}


def json_bytes(arguments: JsonObject) -> bytes:
    """Return *arguments* as JSON. Pydantic's strict models take dates, enums and bytes only from JSON."""
    try:
        return to_json(dict(arguments), inf_nan_mode="constants")
    except (PydanticSerializationError, UnicodeError, ValueError):
        raise BadArgumentsError("the arguments hold something that is not JSON, or half of a character") from None


def explain(error: ValidationError, *, whole: str = "arguments") -> str:
    """Describe at most 5 faults, each with its place, and without the values; *whole* is what the root is called."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{_place(problem['loc']) or whole}: {problem['msg']}" for problem in problems[:_MAX_ERRORS_TOLD]]
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def why_unusable(error: Exception) -> str:
    """Say in a sentence what one of `UNUSABLE_TYPE` says is wrong with a type."""
    if isinstance(error, SchemaError):
        reason = str(error).splitlines()[-1].strip().removeprefix("SchemaError: ")
        return (
            f"{reason}; in a TypedDict, NotRequired makes it optional" if "cannot have a default" in reason else reason
        )
    return str(error).splitlines()[0].split(". ")[0]


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))


def _with_root_inline(schema: dict[str, Json]) -> dict[str, Json]:
    """Copy the definition of a recursive type to the root, where model APIs want an object and not a reference."""
    reference: str = schema.pop("$ref", "")
    return {**schema["$defs"][reference.removeprefix("#/$defs/")], **schema} if reference else schema
