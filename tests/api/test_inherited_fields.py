"""Answers that inherit their fields from an object of ours."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, with_config

from toolsearch.api.base import ANSWER, body_of


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Kept(Name):
    secret: str = "s"


@with_config(ANSWER)
@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Name):
    is_known: Annotated[bool, Field(alias="known", description="Whether it was seen before.")] = True
    at: int


class Answer(BaseModel):
    shown: Shown


def test_a_body_has_the_fields_that_it_inherits_and_those_that_are_given_and_no_others():
    answer = Answer(shown=body_of(Shown, Kept("a", is_known=False), at=3))

    assert answer.model_dump(by_alias=True) == {"shown": {"name": "a", "known": False, "at": 3}}


def test_the_schema_says_that_all_fields_are_always_sent_and_shows_no_default_of_ours():
    schema = TypeAdapter(Shown).json_schema(mode="serialization")

    assert sorted(schema["required"]) == ["at", "known", "name"]
    assert schema["properties"]["known"] == {
        "title": "Known",
        "type": "boolean",
        "description": "Whether it was seen before.",
    }


def test_a_client_reads_the_name_that_is_sent_and_passes_over_fields_that_came_later():
    read = TypeAdapter(Shown).validate_python({"name": "a", "known": False, "at": 3, "later": 1})

    assert read == Shown(name="a", is_known=False, at=3)
