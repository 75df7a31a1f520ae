"""Splicing of bodies: what is not replaced keeps its bytes."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.proxy_talk import Talk
from tests.kit.strict_upstreams import Reply, Text
from toolsearch.proxy.body import MOST_ITEMS, Body, has_repeated_keys, list_text

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SPACE = st.text(" \t\r\n", max_size=3)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, dict[str, Any], dict[str, str]]:
    """A body with white space anywhere, its value, and the text of each of its values."""
    value: dict[str, Any] = draw(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=5))
    texts = {
        key: json.dumps(each, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
        for key, each in value.items()
    }
    members = [
        f"{draw(SPACE)}{json.dumps(key)}{draw(SPACE)}:{draw(SPACE)}{text}{draw(SPACE)}" for key, text in texts.items()
    ]
    written = f"{draw(SPACE)}{{{','.join(members) or draw(SPACE)}}}{draw(SPACE)}"
    return written.encode(errors="surrogatepass"), value, texts


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(bodies(), st.data())
def test_only_the_replaced_values_change(
    body: tuple[bytes, dict[str, Any], dict[str, str]], data: st.DataObject
) -> None:
    content, value, texts = body
    read = Body.read(content, lists=data.draw(st.sampled_from([(), tuple(value)])))
    if not _is_utf8(content):
        assert read is None
        return
    assert read is not None
    assert read.replaced({}) == content
    assert {key: read.written(part) for key, part in read.parts.items()} == texts

    replaced = (
        {key: "[0]" for key in data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)) if value}
        if value
        else {}
    )
    expected = content.decode()
    changed = read.replaced({**replaced, "quite new": "1"})

    assert json.loads(changed) == {**value, **{key: [0] for key in replaced}, "quite new": 1}
    kept = [text for key, text in texts.items() if key not in replaced]
    assert all(text.encode() in changed for text in kept)
    assert len(changed) <= len(expected.encode()) + len(',"quite new":1') + 3 * len(replaced)


@given(st.lists(JSON, max_size=5))
def test_the_elements_of_a_list_are_given_with_their_texts(values: list[Any]) -> None:
    read = Body.read(json.dumps({"a": values, "b": values}).encode(), lists=("a",))

    assert read is not None
    assert (read.get("a"), read.get("b"), read.items("b")) == (values, values, [])
    assert read.items("a") == [(value, json.dumps(value)) for value in values]
    assert json.loads(list_text([text for _, text in read.items("a")])) == values


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"1", b"{", b'{"a":1,}', b'{"a":[1,]}', b'{"a":1}{}', b'{"a" 1}', b"{a:1}", b'{"a":1 "b":2}'),
        *(b"\xff", b"\xef\xbb\xbf{}", b'{"a":' + b"[" * 100_000, b'{"a":1,"\\u0061":2}'),
        b'{"a":' + b"9" * 5_000 + b"}",
    ],
)
def test_nothing_but_one_object_without_repeated_keys_is_read(content: bytes) -> None:
    assert Body.read(content) is None
    assert Body.read(content, lists=("a",)) is None


def test_a_list_of_very_many_items_is_read_only_as_a_whole() -> None:
    """Each item costs time, and a body that is no conversation has room for millions."""
    content = json.dumps({"a": [1] * (MOST_ITEMS + 1)}).encode()

    assert Body.read(content, lists=("a",)) is None
    assert Body.read(content) is not None
    assert Body.read(content.replace(b"[1, ", b"[", 1), lists=("a",)) is not None


def test_a_repeated_key_is_found_at_any_depth() -> None:
    assert has_repeated_keys('[{"a": [{"b": 1, "b": 1}]}]')
    assert not has_repeated_keys('[{"a": [{"b": 1}, {"b": 1}]}]')


async def test_the_body_of_one_client_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    class Watched(Body):
        @classmethod
        def read(cls, *_: object, **__: object) -> None:
            threads.append(threading.get_ident())

    monkeypatch.setattr("toolsearch.proxy.app.Body", Watched)
    await Talk("messages", [Reply([Text("Hello.")])]).ask()

    assert threads
    assert threading.get_ident() not in threads
