"""Words into terms: identifiers, folding, stems, CJK."""

from __future__ import annotations

import pytest

from toolsearch_indexes.analysis import fold, name_words, surfaces, terms


@pytest.mark.parametrize("name", ["sendEmail", "send_email", "send-email", "SendEmail", "send.email", "SEND_EMAIL"])
def test_an_identifier_is_split_and_also_kept_whole_in_any_style(name: str) -> None:
    assert surfaces(name) == ("send", "email", "sendemail")


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("HTTPServer", ("http", "server", "httpserver")),
        ("base64Encode", ("base", "64", "encode", "base64encode")),
        ("s3", ("s3",)),
        ("v2_api", ("api", "v2api")),
        ("ÜberGröße", ("uber", "grosse", "ubergrosse")),
        ("user's", ("user",)),
        ("plain", ("plain",)),
    ],
)
def test_words_split_at_case_and_digits(word: str, parts: tuple[str, ...]) -> None:
    assert surfaces(word) == parts


def test_case_width_ligatures_and_accents_are_folded() -> None:
    assert fold("Ｃafé ﬁle STRASSE Ёлка") == "cafe file strasse елка"


def test_english_words_are_stemmed_and_function_words_dropped() -> None:
    assert terms("I want to list the invoices of my customers") == ["list", "invoic", "custom"]


def test_verbs_that_name_what_a_tool_does_are_kept() -> None:
    assert terms("get find use show") == ["get", "find", "use", "show"]


def test_chinese_runs_become_pairs_and_a_single_character_stays() -> None:
    assert terms("搜索引擎 图 bing搜索") == ["搜索", "索引", "引擎", "图", "bing", "搜索"]


def test_marks_of_other_scripts_stay_inside_their_words() -> None:
    assert terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


def test_a_name_reads_as_a_phrase() -> None:
    assert name_words("github__createIssue_v2") == "github create issue v 2"
