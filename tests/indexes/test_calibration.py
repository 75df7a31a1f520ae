"""Scores as probabilities: one scale for all requests, by which what no tool serves is left unanswered."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.scores import (
    FOLLOWING,
    LEAST,
    SURE,
    SURE_SCORE,
    Scale,
    hybrid_scale,
    keyword_scale,
    semantic_scale,
)
from toolsearch_indexes.semantic import _SERVED, _UNRELATED_TOOLS

TOOLS = {
    "send_email": "Send an email message to one or more recipients.",
    "read_inbox": "List the newest messages of a mailbox.",
    "create_event": "Add an event to a calendar.",
    "list_events": "List the events of a calendar on a day.",
    "get_forecast": "Weather forecast of a city for the next days.",
    "convert_currency": "Convert an amount of money from one currency to another.",
    "pay_invoice": "Pay an open invoice from a bank account.",
    "create_invoice": "Make out an invoice to a customer.",
    "create_issue": "Open a new issue in a repository.",
    "close_issue": "Close an issue of a repository.",
    "merge_pull_request": "Merge a pull request into its base branch.",
    "git_log": "Show the latest commits of a branch.",
    "read_file": "Return the text of a file.",
    "write_file": "Write text to a file.",
    "delete_file": "Delete a file or a folder.",
    "list_directory": "List the files of a folder.",
    "run_query": "Run an SQL query against a database.",
    "describe_table": "Show the columns of a database table.",
    "resize_image": "Resize an image to a width and a height.",
    "crop_image": "Cut a rectangle out of an image.",
    "translate_text": "Translate text into another language.",
    "summarize_text": "Shorten a long text to its main points.",
    "play_song": "Play a song on a speaker.",
    "set_thermostat": "Set the temperature of a room.",
    "book_flight": "Book a flight between two airports.",
    "find_hotel": "Find a hotel near a place.",
    "track_parcel": "Say where a parcel is.",
    "start_server": "Start a virtual machine.",
    "stop_server": "Stop a virtual machine.",
    "get_stock_price": "Latest price of a share.",
}
RANKED = ("keyword", "semantic", "hybrid")


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    return ToolSearchIndex((ToolDocument(*tool) for tool in TOOLS.items()), encoder=open_encoder(BUILT_IN))


# The scale


def test_a_score_is_the_probability_of_its_log_odds() -> None:
    assert Scale(1, 0).score(0) == 0.5
    assert Scale(2, -1).score(1) == pytest.approx(0.7311, abs=1e-4)  # 1 / (1 + 1/e)
    assert Scale(2, -1).score(0) == pytest.approx(0.2689, abs=1e-4)
    assert pytest.approx(0.4378, abs=1e-4) == SURE_SCORE  # 1 / (1 + e^0.25)


def test_what_fits_begins_at_the_least_log_odds_whatever_the_scale() -> None:
    assert LEAST < SURE
    for scale in (Scale(1, 0), Scale(0.25, 3), Scale(4, -2)):
        least = (LEAST - scale.offset) / scale.slope
        assert scale.fits(least + 1e-6)
        assert not scale.fits(least - 1e-6)


scales = st.one_of(
    st.builds(keyword_scale, st.just(0.0) | st.floats(1, 500), st.integers(1, 50_000)),
    st.builds(semantic_scale, st.floats(-3, 3), st.integers(1, 50_000), st.floats(0, 1)),
    st.builds(hybrid_scale, st.floats(-3, 3), st.integers(1, 50_000), st.floats(0, 1)),
)


@given(scales, st.floats(-10, 40), st.floats(0.01, 20))
def test_a_better_match_never_scores_less(scale: Scale, raw: float, more: float) -> None:
    assert 0 < scale.score(raw) <= scale.score(raw + more) <= 1
    assert scale.fits(raw + more) or not scale.fits(raw)
    assert scale.slope > 0


def test_the_same_match_is_worth_less_among_more_tools_and_for_a_request_of_less_sense() -> None:
    for few, many in (
        (keyword_scale(20, 10), keyword_scale(20, 1_000)),
        (semantic_scale(0, 10, 1), semantic_scale(0, 1_000, 1)),
        (hybrid_scale(0, 10, 1), hybrid_scale(0, 1_000, 1)),
        (semantic_scale(0, 100, 1), semantic_scale(0, 100, 0.5)),
        (hybrid_scale(0, 100, 1), hybrid_scale(0, 100, 0.5)),
        (semantic_scale(0, 100, 1), semantic_scale(0, 100, 1, 0.5)),
        (hybrid_scale(0, 100, 1), hybrid_scale(0, 100, 1, 0.5)),
    ):
        assert few.score(5) > many.score(5)


class Nearer(StaticEncoder):
    """Puts some requests right at the tools that serve them."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        tools = dict(zip(_SERVED, _UNRELATED_TOOLS, strict=True))
        return super().encode_queries([tools.get(text, text) for text in texts])


def test_an_encoder_that_puts_requests_nearer_to_tools_is_believed_less(index: ToolSearchIndex) -> None:
    nearer = ToolSearchIndex((ToolDocument(*tool) for tool in TOOLS.items()), encoder=Nearer())
    assert index.arm
    assert nearer.arm
    assert index.arm.surplus == 0
    assert nearer.arm.surplus > 1

    for strategy in ("semantic", "hybrid"):
        assert index.search("how many dollars are 20 euros", strategy=strategy)
        assert not nearer.search("how many dollars are 20 euros", strategy=strategy)


# Answers


REQUESTS = [
    ("what will the weather be like in Oslo tomorrow", "get_forecast"),
    ("send a mail to Ann", "send_email"),
    ("how many dollars are 20 euros", "convert_currency"),
    ("make this picture smaller", "resize_image"),
    ("where is my package", "track_parcel"),
    ("put a meeting on my calendar", "create_event"),
    ("remove a folder", "delete_file"),
]


@pytest.mark.parametrize(("query", "name"), REQUESTS)
def test_what_a_tool_serves_is_answered_surely(index: ToolSearchIndex, query: str, name: str) -> None:
    best = index.search(query)[0]

    assert (best.name, best.confidence) == (name, "high")
    assert best.score >= SURE_SCORE


@pytest.mark.parametrize("strategy", RANKED)
@pytest.mark.parametrize(
    "query", ["zzyzx", "qwxzv jkpfh", "xqzt", "hjkl vbnm", "blorp tang fizzle", "zzzzzz", "?!", "🎉"]
)
def test_gibberish_is_not_answered(index: ToolSearchIndex, strategy: str, query: str) -> None:
    assert index.search(query, strategy=strategy) == []


def test_letters_at_random_are_seldom_answered_and_never_surely(index: ToolSearchIndex) -> None:
    letters = random.Random(1)  # noqa: S311  the same letters at each run
    words = ["".join(letters.choices("bcdfghjklmnpqrstvwxzaeiou", k=7)) for _ in range(200)]
    answers = [index.search(f"{one} {other}") for one, other in zip(words[::2], words[1::2], strict=True)]

    assert sum(bool(hits) for hits in answers) <= 5  # of 100; measured over many, 1 to 4
    assert all(hit.confidence == "low" and hit.score < 0.25 for hits in answers for hit in hits)


@pytest.mark.parametrize("query", ["who won the match", "walk the dog", "knit a sweater"])
def test_what_no_tool_serves_is_answered_with_doubt_if_at_all(index: ToolSearchIndex, query: str) -> None:
    hits = index.search(query)

    assert {hit.confidence for hit in hits} <= {"low"}
    assert all(hit.score < SURE_SCORE for hit in hits)


def test_a_hit_is_weak_by_its_own_score(index: ToolSearchIndex) -> None:
    """A sure answer does not make a tool sure that stands in it for want of better ones."""
    seen = set()
    for query, _ in REQUESTS:
        best, *others = index.search(query, limit=10)
        for hit in others:
            assert (hit.confidence != "low") == (best.confidence != "low" and hit.score >= SURE_SCORE)
            seen.add((best.confidence, hit.confidence))
    assert {("high", "medium"), ("high", "low")} <= seen


def test_a_weak_match_is_given_with_low_confidence_for_all_of_the_answer() -> None:
    """A single word in common is some reason to look at the tool, and none to trust it."""
    hits = ToolSearchIndex([ToolDocument(*tool) for tool in TOOLS.items()]).search("walk my dog to the city park")

    assert [(hit.name, hit.confidence) for hit in hits] == [("get_forecast", "low")]


@pytest.mark.parametrize("strategy", RANKED)
def test_scores_fall_from_the_best_and_none_is_below_the_least(index: ToolSearchIndex, strategy: str) -> None:
    for query, name in REQUESTS:
        scores = [hit.score for hit in index.search(query, strategy=strategy, limit=30)]
        assert scores == sorted(scores, reverse=True)
        assert all(Scale(1, 0).score(LEAST) <= score < 1 for score in scores[:1]), name
        assert all(Scale(1, 0).score(FOLLOWING) <= score for score in scores), name


@pytest.mark.parametrize("strategy", RANKED)
def test_a_tool_asked_for_by_its_name_scores_1(index: ToolSearchIndex, strategy: str) -> None:
    assert index.search("git_log", strategy=strategy)[0] == Hit("git_log", 1.0, "high")
    assert index.search("select:git_log", strategy=strategy) == [Hit("git_log", 1.0, "high")]


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
@pytest.mark.parametrize(
    ("query", "confidence"),
    [
        ("translate a text to French", "low"),  # one word of it is what the tool is called, and all else is missing
        ("translate text", "low"),
        ("translate a glob pattern to a regular expression", "high"),
        ("translate", "high"),  # it may mean the name
        ("translate of a text", "high"),  # what stands before "of" is asked for
        ("convert a glob pattern to a regular expression", "high"),  # none of it is what the tool is called
        ("glob syntax", "high"),  # one word of it is in the description alone
    ],
)
def test_a_tool_that_is_called_as_one_word_of_a_request_is_not_surely_what_it_asks_for(
    strategy: str, query: str, confidence: str
) -> None:
    tools = [ToolDocument(name, text) for name, text in TOOLS.items() if name != "translate_text"]
    translate = ToolDocument(
        "fnmatch__translate",
        "Translate a shell glob pattern to a regular expression.",
        server="fnmatch",
        local_name="translate",
    )
    index = ToolSearchIndex([*tools, translate], encoder=open_encoder(BUILT_IN))

    hits = index.search(query, strategy=strategy)  # type: ignore[arg-type]
    assert hits[0].name == "fnmatch__translate"
    assert hits[0].confidence == confidence
    assert all(hit.confidence == "low" for hit in hits if confidence == "low" or hit.score < SURE_SCORE)
