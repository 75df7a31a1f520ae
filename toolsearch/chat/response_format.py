"""Answers of a type: JSON that fits a schema, asked for in the provider's own way or, where it has none, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar, cast, overload

from toolsearch.calling.absent import without_absent
from toolsearch.calling.validation import faults_of
from toolsearch.errors import BadAnswerError, BadArgumentsError, BadToolError
from toolsearch.tools.given_schema import require_schema
from toolsearch.tools.input_type import JsonType
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import namespaced
from toolsearch.tools.strict import strict_schema
from toolsearch.wire.answers import ChatResponse

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ResponseFormat(Generic[Answer]):
    """What an answer has to be. Made by `of`.

    name           what providers are told that it is called
    strict_schema  *schema* as providers can hold a model to it; None where it cannot be said so
    """

    name: str
    schema: JsonObject
    strict_schema: JsonObject | None
    _parse: Callable[[JsonObject], Answer]

    @overload
    @classmethod
    def of(cls, kind: type[Answer]) -> ResponseFormat[Answer]: ...

    @overload
    @classmethod
    def of(cls, kind: JsonObject) -> ResponseFormat[JsonObject]: ...

    @classmethod
    def of(cls, kind: Any) -> ResponseFormat[Any]:
        """Return the format for *kind*: a pydantic model, dataclass or TypedDict, or a JSON Schema, which gives dicts.

        Raises BadToolError for a type that JSON cannot carry, or whose values are no JSON objects.
        """
        if isinstance(kind, Mapping):
            schema = require_schema(cast("JsonObject", kind), "the schema of an answer")
            return ResponseFormat(_legal(schema.get("title")), schema, _strict(schema), dict)
        of_kind = JsonType(kind, role="type of an answer")
        if of_kind.schema.get("type") != "object":
            raise BadToolError(f"the answer's type {of_kind.name} is not a JSON object; make it a field of a dataclass")
        schema = of_kind.schema
        return ResponseFormat(
            _legal(of_kind.name), schema, _strict(schema), lambda value: of_kind.parse(value, whole="answer")
        )

    def read(self, response: ChatResponse) -> Answer:
        """Return what *response* says, as a value of the type. Raises BadAnswerError if it is none."""
        try:
            value = without_absent(self.schema, _object_in(response.text))
            faults = faults_of(self.schema, value, whole="answer")
            if not faults:
                return self._parse(value)
        except (BadArgumentsError, BadToolError) as error:
            faults = str(error)
        ended = "" if response.finish_reason == "stop" else f" (it ended with {response.finish_reason!r})"
        raise BadAnswerError(f"the answer is no {self.name}{ended}: {faults}", response)


def _legal(name: object) -> str:
    return namespaced("", name) if isinstance(name, str) else "answer"


def _strict(schema: JsonObject) -> JsonObject | None:
    try:
        return strict_schema(schema)
    except BadToolError:
        return None


def _object_in(text: str) -> JsonObject:
    """Return the JSON object that *text* is. Raises BadArgumentsError without quoting it."""
    try:
        value: object = json.loads(_without_fence(text), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadArgumentsError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise BadArgumentsError("it holds a number that JSON does not have, or is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadArgumentsError("it is JSON, but not an object")
    return cast("JsonObject", value)


def _without_fence(text: str) -> str:
    """Return *text* without the Markdown fence that models put around JSON."""
    lines = text.strip().splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if is_fenced else text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
