"""Patterns over tools: what matches, in which order, and what is refused with which advice."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.errors import BadPatternError, IndexStoreError
from toolsearch_indexes.regex import RegexPart, compile_pattern


def ranked(part: RegexPart, pattern: str, **options: bool) -> list[int]:
    """The matching rows, best first; equal scores by row."""
    rows, scores = part.scan(compile_pattern(pattern, **options))
    return [int(row) for row in rows[np.lexsort((rows, -scores))]]


def score(document: ToolDocument, pattern: str) -> float:
    _, scores = RegexPart.build([document]).scan(compile_pattern(pattern))
    return float(scores[0])


def same_arrays(one: RegexPart, other: RegexPart) -> bool:
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


ISSUES = [
    ToolDocument("github__get_issue", "Get one issue.", parameter_names=("repo", "number"), local_name="get_issue"),
    ToolDocument("list_repos", "List repositories; does not get issues.", parameter_names=("page",)),
    ToolDocument("widget", "Make a widget.", parameter_names=("issue_id",)),
]


def test_a_name_match_comes_before_a_description_match_before_a_parameter_match() -> None:
    assert ranked(RegexPart.build(ISSUES), "issue") == [0, 1, 2]
    assert ranked(RegexPart.build(ISSUES), "get") == [0, 2, 1]  # in widget's name, though late, and in a description


def test_the_worst_match_of_a_kind_stays_above_the_best_of_the_next() -> None:
    late = ToolDocument("a" * 500_000 + "x")
    early = ToolDocument("b", "x")
    assert ranked(RegexPart.build([early, late]), "x") == [1, 0]


def test_the_caret_is_the_begin_of_the_own_name_and_of_the_name_with_the_server() -> None:
    part = RegexPart.build(ISSUES)
    assert ranked(part, "^get_issue$") == [0]
    assert ranked(part, "^github__get") == [0]


def test_an_own_name_match_comes_before_one_that_needs_the_servers_prefix() -> None:
    part = RegexPart.build([ToolDocument("git__log", local_name="log"), ToolDocument("x__git", local_name="git")])
    assert ranked(part, "git") == [1, 0]


def test_earlier_comes_before_tighter_and_tighter_decides_at_the_same_place() -> None:
    names = ["a_list", "list_of_all_things", "list_all", "list"]
    assert ranked(RegexPart.build([ToolDocument(name) for name in names]), "list") == [3, 2, 1, 0]


def test_a_score_is_its_formula() -> None:
    """In the second line of four characters, from character 1, half of the line: band 3 of 4 for an own name."""
    closeness = 1 / 2 - (1 - 0.5) / (2 * 3)
    assert score(ToolDocument("abcd"), "bc") == pytest.approx((3 + 0.05 + 0.95 * closeness) / 4)
    assert score(ToolDocument("abcd"), "abcd") == 1.0


def test_the_best_of_a_tools_parameters_counts() -> None:
    far = ToolDocument("far", parameter_names=("source_timezone", "target_timezone"))
    near = ToolDocument("near", parameter_names=("source_timezone", "timezone"))
    assert ranked(RegexPart.build([far, near]), "timezone") == [1, 0]


def test_a_title_is_looked_at_too() -> None:
    assert ranked(RegexPart.build([ToolDocument("a", title="Copy Files")]), "^copy files$") == [0]


def test_case_is_ignored_unless_asked_for_in_any_alphabet() -> None:
    part = RegexPart.build([ToolDocument("a", "Éléments GELÖSCHT"), ToolDocument("b", "Список")])
    assert ranked(part, "élÉments") == [0]
    assert ranked(part, "СПИСОК") == [1]
    assert ranked(part, "gelöscht", case_sensitive=True) == []


def test_places_and_lengths_count_characters_not_bytes() -> None:
    assert score(ToolDocument("a", "日本語 x"), "x") == score(ToolDocument("a", "abc x"), "x")
    assert score(ToolDocument("a", "日本語"), "本") == score(ToolDocument("a", "abc"), "b")
    assert score(ToolDocument("a", "日本語"), "^..") == score(ToolDocument("a", "abc"), "ab")


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\x0b", "\x1e", "\x85", "\u2028", "\t \t"])
def test_white_space_of_any_kind_is_one_space(separator: str) -> None:
    part = RegexPart.build([ToolDocument("a", f"first{separator}second")])
    assert ranked(part, "first second$") == [0]
    assert ranked(part, "^second") == []


@pytest.mark.parametrize(
    "pattern", [r"end[^x]+start", r"end\s+start", "(?s)end.*start", r"end\n+start", r"end\W*start"]
)
def test_no_match_reaches_from_one_tools_text_into_the_nexts(pattern: str) -> None:
    assert ranked(RegexPart.build([ToolDocument("a", "the end"), ToolDocument("b", "start")]), pattern) == []


def test_the_ends_of_the_text_are_the_ends_of_a_field() -> None:
    part = RegexPart.build([ToolDocument("list_all"), ToolDocument("all_list")])
    assert ranked(part, r"\Alist") == [0]
    assert ranked(part, r"list\z") == [1]
    assert ranked(part, r"\Qlist\z\E") == []


def test_half_a_surrogate_pair_in_a_description_spoils_nothing() -> None:
    assert ranked(RegexPart.build([ToolDocument("a", "bad \ud800 text"), ToolDocument("b", "text")]), "text") == [1, 0]


def test_rows_are_ascending_and_only_allowed_ones() -> None:
    part = RegexPart.build([ToolDocument(name) for name in ("xa", "b", "cx", "x")])
    rows, scores = part.scan(compile_pattern("x"), np.array([True, True, True, False]))
    assert rows.tolist() == [0, 2]
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    assert (scores > 0).all()


@pytest.mark.parametrize("pattern", ["^list", "e", "user|id", "日", "nothing like it"])
@pytest.mark.parametrize("limit", [1, 3, None])
def test_a_scan_of_few_allowed_rows_gives_what_a_scan_of_all_gives_for_them(pattern: str, limit: int | None) -> None:
    documents = [
        ToolDocument(f"s__list_{n}" if n % 3 else f"s__日{n}", f"Of user {n}\nand e", parameter_names=("id",) * (n % 4))
        for n in range(100)
    ]
    part, allowed = RegexPart.build(documents), np.arange(100) % 11 == 4
    rows, scores = part.scan(compile_pattern(pattern))
    found, few = part.scan(compile_pattern(pattern), allowed, limit=limit)
    expected = dict(zip(rows.tolist(), scores.tolist(), strict=True))
    wanted = sorted((row for row in expected if allowed[row]), key=lambda row: (-expected[row], row))[:limit]
    assert set(wanted) <= set(found.tolist()) <= set(np.flatnonzero(allowed).tolist())
    assert few.tolist() == [expected[row] for row in found.tolist()]


def test_a_limit_leaves_the_best_and_their_scores_as_they_are() -> None:
    part = RegexPart.build([ToolDocument("a", "x"), ToolDocument("x"), ToolDocument("x_two"), ToolDocument("b", "x")])
    pattern = compile_pattern("x")
    every, scores = part.scan(pattern)
    some, some_scores = part.scan(pattern, limit=2)
    assert every.tolist() == [0, 1, 2, 3]
    assert some.tolist() == [1, 2]  # the names filled the limit, so no description was read
    assert some_scores.tolist() == scores[1:3].tolist()
    assert part.scan(pattern, np.array([True, True, False, True]), limit=2)[0].tolist() == [0, 1, 3]


def test_an_empty_part_and_empty_texts_match_nothing() -> None:
    assert ranked(RegexPart.build([]), ".+") == []
    assert ranked(RegexPart.build([ToolDocument("a"), ToolDocument("b", "text")]), "text") == [1]


def test_merged_parts_equal_a_fresh_build_of_what_was_kept() -> None:
    more = [
        ToolDocument("s__é", "日本\nx", local_name="é"),
        ToolDocument("plain"),
        ToolDocument("z", "", "T", ("p", "q")),
    ]
    keep = [np.array([True, False, True]), np.array([False, True, True])]
    merged = RegexPart.merge([RegexPart.build(ISSUES), RegexPart.build(more)], keep)
    assert merged.rows == 4
    assert same_arrays(merged, RegexPart.build([ISSUES[0], ISSUES[2], more[1], more[2]]))
    assert RegexPart.merge([], []).rows == 0


def test_stored_arrays_answer_the_same_when_memory_mapped(tmp_path) -> None:
    part = RegexPart.build(ISSUES)
    for name, array in part.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in part.arrays()}
    stored = RegexPart.from_arrays(mapped)
    assert stored.rows == 3
    assert ranked(stored, "issue") == [0, 1, 2]


def test_stored_arrays_that_do_not_belong_together_are_refused() -> None:
    arrays = RegexPart.build(ISSUES).arrays()
    with pytest.raises(IndexStoreError, match="lacks"):
        RegexPart.from_arrays({})
    with pytest.raises(IndexStoreError, match="damaged"):
        RegexPart.from_arrays({**arrays, "description.blob": arrays["description.blob"][1:]})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "^(a?){100}a{100}$"])
def test_patterns_that_hang_other_engines_finish_on_a_million_characters(pattern: str) -> None:
    """A backtracking engine needs longer than the universe has for these."""
    part = RegexPart.build([ToolDocument("a" * 1_000_000 + "!")])
    assert ranked(part, pattern) == []


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("(?=list)get", "lookahead"),
        ("(?!list)get", "lookahead"),
        ("(?<=get_)issue", "lookbehind"),
        ("(?<!get_)issue", "lookbehind"),
        (r"(a)\1", "backreferences"),
        ("(?P<x>a)(?P=x)", "backreferences"),
        (r"list\Z", r"write \$ or"),
        ("a++", "possessive"),
        ("(?>a)", "atomic"),
        ("a{1001}", "1000"),
        ("(a{100}){100}", "nested repeats"),
        (r"(?:\pL{0,900}|.{0,900})zq", "repeat counts"),
        ("(?:.{0,30}(t|e).{0,30}[aeiou]){10}", "of which 2000 are allowed"),
        (r"(?x) a", "flags"),
        (r"\C+", "any byte"),
        ("\ud800", "surrogate"),
        ("(a", r"missing \): \(a"),
        ("a" * 513, "513 characters; at most 512"),
        ("", "empty"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_write_instead(pattern: str, advice: str, capfd) -> None:
    with pytest.raises(BadPatternError, match=advice):
        compile_pattern(pattern)
    assert capfd.readouterr() == ("", "")  # RE2 itself says nothing on stderr


@pytest.mark.parametrize(
    "pattern", ["x*", "*", "**", ".*", "^", "$", r"\b", r"\B", "list|", r"(list)?\b", r"a\b|\B$", r"\A", "^$"]
)
def test_a_pattern_that_can_match_no_characters_is_refused(pattern: str) -> None:
    with pytest.raises(BadPatternError, match="no characters at all"):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", [".+", "^get.*", ".*list.*", r"\bget\b", "(?P<verb>get)", r"get\\"])
def test_a_pattern_that_must_match_something_is_taken(pattern: str) -> None:
    assert compile_pattern(pattern).source == pattern


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("get_*_data", [0, 1, 3]),  # get_data is what the regular expression means
        ("*_data", [0, 1, 3]),
        ("GET_**_Data", [0, 1]),
        ("crm__get_*", [1]),
        ("target*", [2]),
        ("*_id", [4]),  # a parameter
        ("get_.*_data", [0, 1, 2]),
        ("get_user[*]data", []),
    ],
)
def test_a_glob_matches_whole_names_and_a_regular_expression_parts_of_them(pattern: str, found: list[int]) -> None:
    part = RegexPart.build(
        [
            ToolDocument("get_user_data"),
            ToolDocument("crm__get_all_data", local_name="get_all_data"),
            ToolDocument("target_x_database"),
            ToolDocument("get_data"),
            ToolDocument("look_up", "Get user data.", parameter_names=("user_id",)),
        ]
    )
    assert sorted(ranked(part, pattern)) == found


def test_a_name_that_a_glob_matches_comes_before_one_of_which_the_pattern_matches_a_part() -> None:
    part = RegexPart.build([ToolDocument("reset_all_flags"), ToolDocument("set_flag"), ToolDocument("set_")])
    assert ranked(part, "set_*") == [1, 2, 0]


@pytest.mark.parametrize("pattern", ["a", "a+b", "^a", "b$", r"\bab", "[^a ]b", "b.a", "(?:ab|ba)c?"])
def test_rows_are_those_in_which_some_field_matches_by_itself(pattern: str) -> None:
    """The oracle searches field by field; the patterns are ours, so that `re` may run them."""
    random = np.random.default_rng(0)
    texts = iter(["".join(letters) for letters in random.choice(list("abcB é_"), size=(600, 5))])
    documents = [ToolDocument(f"{n}{next(texts)}", next(texts), parameter_names=(next(texts),)) for n in range(200)]
    expected = [
        row
        for row, document in enumerate(documents)
        for fields in [(document.name, document.description, *document.parameter_names)]
        if any(re.search(pattern, " ".join(field.split()), re.IGNORECASE | re.ASCII) for field in fields)
    ]
    assert RegexPart.build(documents).scan(compile_pattern(pattern))[0].tolist() == expected
