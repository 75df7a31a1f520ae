"""Words into terms: identifiers, folding, stems, CJK."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.analysis import american, fold, name_words, pieces, stem, surfaces, terms, words


@pytest.mark.parametrize("name", ["sendEmail", "send_email", "send-email", "SendEmail", "send.email", "SEND_EMAIL"])
def test_an_identifier_is_split_and_also_kept_whole_in_any_style(name: str) -> None:
    assert surfaces(name) == ("send", "email", "sendemail")


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("HTTPServer", ("http", "server", "httpserver")),
        ("listURLs", ("list", "urls", "listurls")),  # several of what is in capitals
        ("VMs", ("vms",)),
        ("DNSserver", ("dn", "sserver", "dnsserver")),  # cannot be told
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


@pytest.mark.parametrize(
    ("british", "expected"),
    [
        ("colours watercolour honourable neighbouring", "colors watercolor honorable neighboring"),
        ("organise organisers organisational summarising", "organize organizers organizational summarizing"),
        ("analyse analysing catalysed", "analyze analyzing catalyzed"),
        ("centre centred centring datacentre metres manoeuvre", "center centered centering datacenter meters maneuver"),
        ("catalogue catalogues catalogued cataloguing dialogues", "catalog catalogs cataloged cataloging dialogs"),
        ("licence licences defence offences", "license licenses defense offenses"),
        ("fuelled dialling initialled counsellor", "fueled dialing initialed counselor"),
        ("programme programmes grey greyscale", "program programs gray grayscale"),
        ("artefacts judgement jewellery enquiry practised", "artifacts judgment jewelry inquiry practiced"),
        ("encyclopaedia anaemia haemoglobin orthopaedic", "encyclopedia anemia hemoglobin orthopedic"),
    ],
)  # fmt: skip
def test_british_spelling_becomes_american(british: str, expected: str) -> None:
    assert " ".join(map(american, british.split())) == expected


@pytest.mark.parametrize(
    "words_of_one_spelling",
    [
        "our four hour hours tour pour source course journal contour detour devour flour sour troubadour",
        "wise otherwise rise arise sunrise noise raise disguise promise premises exercise advertise advise televise",
        "revise precise concise supervise surprise enterprise expertise franchise merchandise compromise paradise",
        "disable basis thesis crisis artisan misers visible isolation",
        "are more store fire restore required scored string hundred predicted literal ring sacred centrist",
        "rogue vogue league analogous catalog blogging",
        "sequence reference conference licensee silence fence",
        "called filling controlled scrolling install billed pulled sells collection cell",
        "programmer programmed programming ecosystem shoestring they haem",
        "cheque tyre storey disc draught",
    ],
)
def test_words_of_one_spelling_stay_as_they_are(words_of_one_spelling: str) -> None:
    assert " ".join(map(american, words_of_one_spelling.split())) == words_of_one_spelling


@pytest.mark.parametrize(
    "spellings",
    [
        "colour color colours colored", "organise organize organising organised", "summarise summarizing summarised",
        "cancel cancelled canceled cancelling", "model modelled modeled modelling", "label labelled labeling",
        "travel travelled traveling", "enrol enroll enrolment enrollment", "fulfil fulfill fulfilment",
        "centre centers centred centering", "licence license licensing", "catalogue catalogs cataloguing",
        "favourite favorites", "programme programs programming", "analyse analyzed analysing",
    ],
)  # fmt: skip
def test_all_spellings_of_a_word_are_one_term(spellings: str) -> None:
    assert len(set(map(stem, spellings.split()))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("tour", "tor"), ("four", "for"), ("metre", "metric"), ("revise", "review"), ("prise", "prize"), ("haem", "hem"),
     ("cheque", "check"), ("tyre", "tire"), ("programmer", "program")],
)  # fmt: skip
def test_words_that_only_look_alike_remain_two_terms(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_relatives_of_a_word_in_ise_stay_together() -> None:
    for relatives in ("revise revision", "advertise advertisement", "precise precision", "supervised supervision"):
        assert len(set(map(stem, relatives.split()))) == 1


@given(st.text(st.sampled_from("aB9 _.-'\n\t,/(\x00\x1c\u2019éß中ｗ\u0301"), max_size=20))
def test_the_words_of_a_text_are_those_of_its_pieces(text: str) -> None:
    assert [word for piece in pieces(text) for word in words(piece)] == words(text)
