"""Counts agree with the published encoding, need no network, and survive text that means harm."""

import lzma
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kit.commands import Ran
from toolsearch import tokens
from toolsearch.errors import ToolSearchError
from toolsearch.tokens import (
    HeuristicTokenCounter,
    O200kTokenCounter,
    count_json,
    default_counter,
    definition_tokens,
)
from toolsearch.tools.definition import ToolDefinition

O200K = O200kTokenCounter()


def test_text_is_cut_into_the_published_token_ids() -> None:
    """24912 is 'hello' and 2375 is ' world', as OpenAI's tokenizer page shows them."""
    assert tokens._o200k().encode_ordinary("hello world") == [24912, 2375]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello", 1), ("hello world", 2), ("1234567", 3), ("   ", 1), ("\ud800", 1)],
)
def test_short_texts_count_as_worked_by_hand(text: str, expected: int) -> None:
    """Digits go in threes; a lone surrogate counts as the replacement character instead of raising."""
    assert O200K.count(text) == expected


def test_what_looks_like_a_special_token_is_plain_text() -> None:
    """A tool description that says <|endoftext|> costs its characters' tokens: < | end of text | >."""
    assert O200K.count("<|endoftext|>") == 7


def test_the_encoding_is_the_one_that_tiktoken_defines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pattern and special tokens, compared with tiktoken's own, whose loading of ranks (a download) is left out."""
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_args, **_kwargs: {})
    published = openai_public.o200k_base()

    assert published["pat_str"] == tokens._PIECES
    assert published["special_tokens"] == tokens._o200k()._special_tokens


def test_two_million_spaces_are_counted_without_a_crash() -> None:
    """In one piece they overflow tiktoken's stack. 128 spaces are one token: 15,625 of them, and the cuts' rest."""
    assert 15_625 <= O200K.count(" " * 2_000_000) <= 15_625 + 10


def test_a_long_text_is_at_most_a_token_off_per_cut() -> None:
    text = "search the issues of a repository, " * 12_000
    exact = len(tokens._o200k().encode_ordinary(text))

    assert len(text) // tokens._PART_CHARS == 2
    assert exact <= O200K.count(text) <= exact + 2


def test_threads_that_count_first_at_once_load_the_ranks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens._load_o200k.cache_clear()
    parsed: list[int] = []
    parse = tokens._parse_ranks
    monkeypatch.setattr(tokens, "_parse_ranks", lambda raw: parsed.append(len(raw)) or parse(raw))

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(O200K.count, ["one two"] * 8))

    assert counts == [2] * 8
    assert len(parsed) == 1


@pytest.mark.parametrize("packed", [b"not xz", lzma.compress(b"aGVsbG8= 0\n")], ids=["unreadable", "other ranks"])
def test_damaged_ranks_are_refused_with_what_to_do(packed: bytes) -> None:
    with pytest.raises(ToolSearchError, match="damaged; reinstall toolsearch"):
        tokens._verified(packed)


def test_nothing_is_loaded_before_the_first_count(run_python: Callable[..., Ran]) -> None:
    code = "import sys, toolsearch.tokens as t; t.default_counter(); print('tiktoken' in sys.modules)"

    assert run_python("-c", code).out == "False\n"


def test_json_is_counted_compact_and_unescaped() -> None:
    assert count_json({"b": 1, "a": ["é", None]}, O200K) == O200K.count('{"b":1,"a":["é",null]}')


def test_a_definition_is_counted_as_the_json_of_name_description_and_schema() -> None:
    """Title, server, tags and annotations are not sent and cost nothing."""
    definition = ToolDefinition("add", "Add.", {"type": "object"}, title="Sum", server="calc", tags=("maths",))

    expected = O200K.count('{"name":"add","description":"Add.","input_schema":{"type":"object"}}')
    assert definition_tokens(definition, O200K) == expected


def test_the_heuristic_says_that_it_estimates() -> None:
    """463 characters at 4.63 a token are 100."""
    assert HeuristicTokenCounter().count("x" * 463) == 100
    assert HeuristicTokenCounter().estimate
    assert not default_counter().estimate
