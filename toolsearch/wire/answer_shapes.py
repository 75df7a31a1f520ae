"""Reading an endpoint's answer, checked: SDKs hand on whatever JSON came, null included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, ValidationError

from toolsearch.errors import ChatModelError
from toolsearch.tools.input_type import explain
from toolsearch.tools.json_types import Json

_WRITTEN_BY_MODELS = ("arguments", "input")


@runtime_checkable
class _Dictable(Protocol):
    """A pydantic model of one of the SDKs."""

    def to_dict(self, *, warnings: bool) -> dict[str, Json]: ...


Shape = TypeVar("Shape", bound=BaseModel)


def read(shape: type[Shape], answer: object) -> tuple[Shape, dict[str, Json]]:
    """Return what *answer*, an SDK's object, says, and the same as the provider sent it.

    Raises ChatModelError, which names the place and shows no value, if it is not of that shape.
    """
    sent = answer.to_dict(warnings=False) if isinstance(answer, _Dictable) else answer
    try:
        return shape.model_validate(sent), cast("dict[str, Json]", sent)
    except ValidationError as error:
        raise ChatModelError(
            f"the endpoint's answer is not one of this API ({explain(error, whole='the answer')}); "
            "check the model and the base URL, or ask again"
        ) from None  # pydantic's own text repeats the values


def without_nulls(value: Json) -> Json:
    """Return *value* without the keys that are null: APIs send some that they do not take back.

    What a model wrote to a tool stays as it is, nulls included.
    """
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {
            key: part if key in _WRITTEN_BY_MODELS else without_nulls(part)
            for key, part in fields.items()
            if part is not None
        }
    if isinstance(value, list):
        return [without_nulls(part) for part in cast("Sequence[Json]", value)]
    return value
