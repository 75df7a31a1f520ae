"""What tools return, as content blocks."""

import base64
import datetime
import enum
import hashlib
import math
import uuid
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, RootModel, model_serializer

from toolsearch.calling.delivery import capped, convert
from toolsearch.calling.plain_json import is_small, json_text, to_json
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.results import ToolOutput

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


class Colour(enum.Enum):
    RED = "red"


class Level(enum.StrEnum):
    HIGH = "high"


class Place(BaseModel):
    name: str
    population: int | None = None


@dataclass
class Trip:
    to: BaseModel
    stops: set[str]


class Reading(BaseModel):
    celsius: float = 0.5
    raw: bytes = b""
    anything: Any = None


class Price(BaseModel):
    """As its author wants it written."""

    model_config = ConfigDict(ser_json_bytes="hex", ser_json_inf_nan="strings")
    amount: Annotated[Decimal, PlainSerializer(float, when_used="json")] = Decimal("1.50")
    bound: float = math.inf
    digest: bytes = b"\xff"
    currency: str = Field("EUR", serialization_alias="iso4217")


class Broken(BaseModel):
    @model_serializer
    def write(self) -> dict[str, object]:
        raise RuntimeError("password=hunter2")


@pydantic.dataclasses.dataclass
class Sample:
    value: float
    raw: bytes


class Point(NamedTuple):
    x: int
    y: int


def text_of(value: object) -> str:
    [block] = convert(value).content
    assert block["type"] == "text"
    return block["text"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Done"),
        ("as it is", "as it is"),
        ("", ""),
        (True, "true"),
        (3, "3"),
        (float("nan"), "null"),
        ({"a": [1, 2.5, None, float("inf")]}, '{"a":[1,2.5,null,null]}'),
        ({"grüße": "日本"}, '{"grüße":"日本"}'),
        ({1: "one", None: "none", (1, 2): "pair", Colour.RED: 1}, '{"1":"one","null":"none","[1,2]":"pair","red":1}'),
        ({"b", "a", "c"}, '["a","b","c"]'),
        ((1, deque([2]), range(3)), "[1,[2],[0,1,2]]"),
        (Point(1, 2), '{"x":1,"y":2}'),
        (
            Trip(Place(name="Rome"), {"Pisa", "Bari"}),
            '{"to":{"name":"Rome","population":null},"stops":["Bari","Pisa"]}',
        ),
        ([Place(name="Rome", population=3)], '[{"name":"Rome","population":3}]'),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), "2026-01-02T03:04:00Z"),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (Level.HIGH, "high"),
        ([b"ab"], '["YWI="]'),
        (b"plain text", "plain text"),
        (np.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        (np.array([math.nan]), "[null]"),
        (Reading(celsius=math.nan, raw=b"ok"), '{"celsius":null,"raw":"ok","anything":null}'),
        (Reading(celsius=-math.inf, raw=b"\xff\x00"), '{"celsius":null,"raw":"/wA=","anything":null}'),
        (
            [Reading(anything={1: Reading(celsius=math.nan, raw=b"\xff")})],
            '[{"celsius":0.5,"raw":"","anything":{"1":{"celsius":null,"raw":"/w==","anything":null}}}]',
        ),
        (Reading(anything="file-\udcff"), '{"celsius":0.5,"raw":"","anything":"file-?"}'),
        (Price(), '{"amount":1.5,"bound":"Infinity","digest":"ff","iso4217":"EUR"}'),
        (RootModel[bytes](b"\xff"), "/w=="),
        ([hashlib.md5(b"abc", usedforsecurity=False)], '["900150983cd24fb0d6963f7d28e17f72"]'),
        (Sample(math.nan, b"\xff"), '{"value":null,"raw":"/w=="}'),
        (
            Trip(Reading(celsius=math.nan), {"b", "a"}),
            '{"to":{"celsius":null,"raw":"","anything":null},"stops":["a","b"]}',
        ),
        ({1.5: 1, math.nan: 2, b"\xff": 3, Decimal("2.0"): 4}, '{"1.5":1,"null":2,"/w==":3,"2.0":4}'),
        ([Decimal("NaN"), datetime.timedelta(seconds=90), datetime.date(2026, 1, 2)], '["NaN","PT1M30S","2026-01-02"]'),
        (np.float32(0.5), "0.5"),
        ("file-\udcff", "file-?"),
    ],
)
def test_values_are_read_as_a_person_would_write_them(value: object, text: str):
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_images_are_recognised_by_their_first_bytes(data: bytes, mime_type: str):
    [block] = convert(bytearray(data)).content

    assert block == {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def test_bytes_that_are_neither_image_nor_text_are_a_resource():
    [block] = convert(b"\x00\xff").content

    assert block["type"] == "resource"
    assert block["resource"]["blob"] == "AP8="
    assert block["resource"]["mimeType"] == "application/octet-stream"


def test_objects_and_lists_are_given_as_structure_too():
    assert convert({"a": (1,)}).structured == {"a": [1]}
    assert convert([1]).structured == [1]
    assert convert("text").structured is None
    assert convert(1).structured is None


def test_an_output_in_mcp_shape_passes():
    output = ToolOutput(({"type": "text", "text": "hello"},), structured={"a": 1}, is_error=True)

    assert convert(output) is output
    assert capped(output, 100) == output


class Secretive:
    def __repr__(self) -> str:
        return "password=hunter2"


def test_a_value_without_a_json_form_is_an_error_that_names_its_type_and_not_its_content():
    with pytest.raises(ToolExecutionError, match="Secretive, which has no JSON form") as raised:
        convert({"deep": [Secretive()]})

    assert "hunter2" not in str(raised.value)


def test_a_model_that_cannot_write_itself_is_an_error_that_does_not_show_why():
    with pytest.raises(ToolExecutionError, match="Broken, which has no JSON form") as raised:
        convert([Broken()])

    assert "hunter2" not in str(raised.value)


def test_a_model_that_holds_itself_or_an_integer_too_long_for_json_is_told_as_such():
    cycle = Reading()
    cycle.anything = [cycle]

    with pytest.raises(ToolExecutionError, match="Reading that contains itself"):
        convert(cycle)
    with pytest.raises(ToolExecutionError, match="an integer of more than 4,300 digits"):
        convert(Reading(anything=10**5_000))


def test_an_iterator_is_refused_since_it_may_never_end():
    with pytest.raises(ToolExecutionError, match="generator, which has no JSON form"):
        convert(n for n in [1])


def test_a_cycle_and_endless_depth_are_errors():
    cycle: list[object] = []
    cycle.append({"again": cycle})
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]

    with pytest.raises(ToolExecutionError, match="a list that contains itself"):
        convert(cycle)
    with pytest.raises(ToolExecutionError, match="more than 100 levels deep"):
        convert(deep)


def test_one_object_in_two_places_is_no_cycle():
    shared = [1]

    assert text_of([shared, shared]) == "[[1],[1]]"


def test_an_integer_too_long_for_json_is_an_error():
    with pytest.raises(ToolExecutionError, match="an integer of more than 4,300 digits"):
        convert([10**5_000])


class Rank(enum.IntEnum):
    FIRST = 1


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=20)
    | st.binary(max_size=5)
    | st.sampled_from([*Colour, *Rank, PurePosixPath("/a"), Decimal("1.5"), Place(name="Rome"), b"\xff"]),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9) | st.sampled_from(list("0123")), inner, max_size=8)
        | st.sets(st.integers() | st.text(max_size=4) | st.tuples(st.text(max_size=4), st.integers()), max_size=8)
        | st.builds(Trip, st.just(Place(name="Bari")), st.sets(st.text(max_size=4)))
    ),
)


@given(plain_values, st.integers(1, 60))
def test_what_is_made_of_a_value_up_to_a_length_begins_as_all_of_it(value: object, length: int):
    whole = json_text(to_json(value))

    part = json_text(to_json(value, length))

    assert part[:length] == whole[:length]
    assert part == whole or len(part) > length


def test_no_more_is_made_of_a_large_value_than_it_takes_to_tell_that_it_is_large():
    endless = {"rows": range(10**12), "more": range(10**12)}
    wide = to_json(dict.fromkeys("abcdefghij"), 10)
    sets = to_json([{("long", 1), ("b" * 50, 2)}], 10)

    [block] = capped(convert(endless, max_characters=10), 10).content

    assert block["text"].startswith('{"rows":[0\n[cut: ')
    assert "200,010 or more" in block["text"]
    assert wide == {"a": None, "b": None}  # 5 characters before each null
    assert sets == [[["b" * 50, 2], ["long", 1]]]  # sorted, and so all of it


def test_a_text_longer_than_what_is_counted_is_said_to_be_so():
    [block] = capped(ToolOutput(({"type": "text", "text": "x" * 200_010},)), 10).content

    assert "200,010 or more" in block["text"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, True),
        ("x" * 100_000, True),
        ("x" * 100_001, False),
        ([0] * 999, True),
        ([0] * 1_000, False),
        ({n: [n] for n in range(333)}, True),
        ({n: [n] for n in range(334)}, False),
        ([["x" * 60_000], ["x" * 60_000]], False),
        (range(3), False),  # nobody knows how long it takes to walk through
        (Place(name="Rome"), False),
    ],
)
def test_small_is_what_takes_no_time_to_write(value: object, expected: bool):
    assert is_small(value) is expected


def test_the_cap_is_over_all_blocks_and_the_structure_goes_with_what_is_cut():
    blocks = tuple({"type": "text", "text": letter * 6} for letter in "abc")

    output = capped(ToolOutput(blocks, structured={"a": 1}), 8)

    assert [block["text"] for block in output.content] == [
        "aaaaaa",
        "bb\n[cut: these are the first 8 of 6 characters]".replace("first 8", "first 2"),
        "[1 more blocks left out: the result is too long]",
    ]
    assert output.structured is None


def test_a_structure_longer_than_the_cap_is_dropped_even_if_the_text_fits():
    output = capped(ToolOutput(({"type": "text", "text": "ok"},), structured={"a": "x" * 50}), 20)

    assert output.structured is None
    assert [block["text"] for block in output.content] == ["ok"]


def test_the_text_of_a_resource_is_cut_in_its_place():
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "abcdef"}}

    [kept] = capped(ToolOutput((block,)), 3).content

    assert kept["resource"] == {"uri": "file:///a", "text": "abc\n[cut: these are the first 3 of 6 characters]"}


def test_images_do_not_count_as_text_but_are_bounded_themselves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolsearch.calling.delivery._MAX_BINARY_CHARACTERS", 10)
    small = {"type": "image", "data": "A" * 8, "mimeType": "image/png"}

    first, second = capped(ToolOutput((small, small)), 1).content

    assert first == small
    assert second["type"] == "text"
    assert second["text"].startswith("[image (image/png, 6 bytes) left out")


@dataclass(slots=True)
class Download:
    name: str
    hexdigest: str


def test_an_object_with_a_field_named_as_a_digest_is_written_whole() -> None:
    assert to_json(Download("a.txt", "ff")) == {"name": "a.txt", "hexdigest": "ff"}
