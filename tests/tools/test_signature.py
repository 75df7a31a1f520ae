"""From signatures to schemas, and from JSON arguments back to Python values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.docstrings import read_docstring
from toolsearch.tools.signature import read_signature


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Filter(TypedDict):
    word: str


class Tree(BaseModel):
    children: list[Tree] = []


class Opaque:
    pass


def properties(function: Callable[..., Any], descriptions: dict[str, str] | None = None) -> dict[str, Any]:
    return dict(read_signature(function, descriptions or {}).input_schema["properties"])


def called_with(function: Callable[..., Any], arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = read_signature(function, {}).bind(arguments, ToolContext())
    return bound.args, bound.kwargs


def test_json_types_literals_and_unions() -> None:
    def f(a: int, b: float, c: Literal["x", "y"], d: str | None, e: Optional[bool] = None, f: int | str = 1): ...  # noqa: UP045

    assert properties(f) == {
        "a": {"type": "integer"},
        "b": {"type": "number"},
        "c": {"type": "string", "enum": ["x", "y"]},
        "d": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "e": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
        "f": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
    }


def test_a_description_in_the_annotation_beats_the_docstrings() -> None:
    def f(a: Annotated[int, "bare"], b: Annotated[int, Field(description="field", ge=0)], c: int): ...

    described = properties(f, {"a": "doc", "b": "doc", "c": "doc"})
    assert {name: each["description"] for name, each in described.items()} == {"a": "bare", "b": "field", "c": "doc"}
    assert described["b"]["minimum"] == 0


def test_structured_types_are_defined_once_and_arrive_as_themselves() -> None:
    def f(colour: Colour, point: Point, where: Filter, tree: Tree, day: date): ...

    schema = read_signature(f, {}).input_schema
    assert schema["properties"]["point"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    arguments = {
        "colour": "red",
        "point": {"x": 1},
        "where": {"word": "w"},
        "tree": {"children": [{}]},
        "day": "2024-02-29",
    }
    assert called_with(f, arguments)[0] == (
        Colour.RED,
        Point(1),
        {"word": "w"},
        Tree(children=[Tree()]),
        date(2024, 2, 29),
    )


def test_names_that_a_model_class_could_not_have_are_fine() -> None:
    def f(schema: int, copy: int, _private: int, model_config: int, self_: int): ...

    assert list(properties(f)) == ["schema", "copy", "_private", "model_config", "self_"]
    numbers = {"schema": 1, "copy": 2, "_private": 3, "model_config": 4, "self_": 5}
    assert called_with(f, numbers)[0] == (1, 2, 3, 4, 5)


def test_a_parameter_without_annotation_takes_any_json() -> None:
    def f(a, b=3): ...

    assert properties(f) == {"a": {}, "b": {"default": 3}}


def test_positional_only_star_and_keyword_arguments_reach_their_places() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *rest: int, d: int = 4, **more: Any): ...

    schema = read_signature(f, {}).input_schema
    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "integer"}}
    assert schema["additionalProperties"] is True
    assert called_with(f, {"a": 1, "c": 9, "rest": [5, 6], "e": "x"}) == ((1, 2, 9, 5, 6), {"d": 4, "e": "x"})


def test_further_keywords_cannot_stand_in_for_the_context_or_for_a_numbered_field() -> None:
    def f(a: int = 1, *, context: ToolContext, **more: Any): ...

    assert called_with(f, {"p0": 5})[1] == {"context": {}, "p0": 5}
    assert called_with(f, {"p0": 5})[0] == (1,)
    with pytest.raises(BadArgumentsError, match="context"):
        called_with(f, {"context": {"user": "mallory"}})


def test_a_default_that_json_cannot_carry_is_not_shown_but_used() -> None:
    missing = object()

    def f(a: Any = missing): ...

    assert properties(f) == {"a": {}}
    assert called_with(f, {})[0] == (missing,)


def test_none_as_a_default_admits_null() -> None:
    def f(a: int = None): ...  # noqa: RUF013

    assert properties(f)["a"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]


@pytest.mark.parametrize(
    "annotation", [Opaque, Callable[[int], int], type(pytest), Callable[[], int] | Callable[[int], int]]
)
def test_a_type_that_json_cannot_carry_is_refused_with_its_parameters_name(annotation: Any) -> None:
    def f(good: int, bad): ...

    f.__annotations__["bad"] = annotation
    with pytest.raises(BadToolError, match="'bad' has a type that JSON cannot carry"):
        read_signature(f, {})


def test_an_annotation_that_does_not_resolve_is_refused() -> None:
    def f(a): ...

    f.__annotations__["a"] = "Nowhere"
    with pytest.raises(BadToolError, match="'Nowhere' is not defined"):
        read_signature(f, {})


def test_a_pydantic_field_as_a_default_is_refused_with_what_to_write_instead() -> None:
    def f(a: int = Field(3)): ...

    with pytest.raises(BadToolError, match="Annotated"):
        read_signature(f, {})


@pytest.mark.parametrize(
    "text",
    [
        "Do it.\n\nArgs:\n    a: the first\n    *rest: the others",
        "Do it.\n\nParameters\n----------\na : int\n    the first\n*rest : int\n    the others",
        "Do it.\n\n:param a: the first\n:param rest: the others\n:returns: nothing",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_docstrings_of_three_styles_say_the_same(text: str) -> None:
    doc = read_docstring(text)
    assert doc.description == "Do it."
    assert doc.parameters == {"a": "the first", "rest": "the others"}


def test_a_docstring_without_style_is_a_description_as_it_stands() -> None:
    assert read_docstring("  Return x.\n\n  >>> x\n  1\n").description == "Return x.\n\n>>> x\n1"
    assert read_docstring(None).description == ""


def test_a_default_that_is_a_path_of_this_machine_is_not_shown():
    def run(program: str = "/opt/tool/bin", mode: str = "fast") -> None: ...

    properties = read_signature(run, {}).input_schema["properties"]

    assert (properties["program"], properties["mode"]) == ({"type": "string"}, {"type": "string", "default": "fast"})
