"""Counts agree with the published encoding, need no network, and survive text that means harm."""

import lzma
from binascii import a2b_base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiktoken import Encoding
from tiktoken_ext import openai_public

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


@pytest.fixture(scope="module")
def tiktoken() -> Encoding:
    """tiktoken's own o200k_base, but for its loading of ranks, a download."""
    raw = tokens._verified(resources.files("toolsearch").joinpath("data", tokens._RANKS_FILE).read_bytes())
    ranks = {a2b_base64(token): int(rank) for token, rank in (line.split() for line in raw.splitlines())}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(openai_public, "load_tiktoken_bpe", lambda *_args, **_kwargs: ranks)
        return Encoding(**openai_public.o200k_base())


_ODD = st.sampled_from(
    "aAsStTvVeE'\u2019\u017f\u00e9\u0130\u00aa\u01c5\u02b0\u0300\u0903\u0663\u2167\u00b2"
    " \n\r\t\v\x1c\x85\u00a0\u2003\u200b\u3000/!-_\u6f22\uff76\U0001f600"
)


@given(st.text(st.characters(exclude_categories=["Cn", "Cs"]) | _ODD, max_size=60))
@example("It's we'LL don'\u017f")
@example("getHTTPResponse_v2  \r\n\t x/y//\n")
@example("\u00e9t\u00e9 \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d \U0001f469\u200d\U0001f4bb e\u0301")
@settings(deadline=None)
def test_any_text_takes_the_tokens_that_tiktoken_gives_it(tiktoken: Encoding, text: str) -> None:
    assert O200K.count(text) == len(tiktoken.encode_ordinary(text))


@pytest.mark.parametrize("path", ["README.md", "toolsearch/engine.py", "tests/test_tokens.py", "benchmarks/search.md"])
def test_whole_files_take_the_tokens_that_tiktoken_gives_them(tiktoken: Encoding, path: str) -> None:
    text = (Path(__file__).parents[1] / path).read_text("utf-8")

    assert O200K.count(text) == len(tiktoken.encode_ordinary(text))


def test_a_long_word_is_merged_as_tiktoken_merges_it(tiktoken: Encoding) -> None:
    """What comes again is not what is kept of the words that were met: these are too long for that."""
    text = "".join(chr(ord("a") + number * number % 26) for number in range(1_000))

    assert [O200K.count(text)] * 2 == [len(tiktoken.encode_ordinary(text)), O200K.count(text)]


def test_two_million_spaces_are_counted_without_a_crash() -> None:
    """128 spaces are one token: 15,625 of them. Each of 10 cuts leaves a piece of 2,048 that is less by one or two."""
    assert 15_625 <= O200K.count(" " * 2_000_000) <= 15_625 + 20


def test_a_long_text_is_at_most_a_token_off_per_cut(tiktoken: Encoding) -> None:
    text = "search the issues of a repository, " * 12_000
    exact = len(tiktoken.encode_ordinary(text))

    assert len(text) // tokens._PART_CHARS == 2
    assert exact <= O200K.count(text) <= exact + 2


def test_threads_that_count_first_at_once_load_the_ranks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens._load_o200k.cache_clear()
    loaded: list[int] = []
    verify = tokens._verified
    monkeypatch.setattr(tokens, "_verified", lambda packed: loaded.append(len(packed)) or verify(packed))

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(O200K.count, ["one two"] * 8))

    assert counts == [2] * 8
    assert len(loaded) == 1


@pytest.mark.parametrize("packed", [b"not xz", lzma.compress(b"aGVsbG8= 0\n")], ids=["unreadable", "other ranks"])
def test_damaged_ranks_are_refused_with_what_to_do(packed: bytes) -> None:
    with pytest.raises(ToolSearchError, match="damaged; reinstall toolsearch"):
        tokens._verified(packed)


def test_nothing_is_loaded_before_the_first_count(run_python: Callable[..., Ran]) -> None:
    code = "import toolsearch.tokens as t; t.default_counter(); print(t._load_o200k.cache_info().currsize)"

    assert run_python("-c", code).out == "0\n"


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
