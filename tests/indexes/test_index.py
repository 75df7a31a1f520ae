"""What a search of the index promises: order, ties, reach, strategies, and how forgiving it is of words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.kit.readers import FakeReader
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import BadPatternError, BadQueryError, EncoderError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.vectors import VectorPart

TOOLS = [
    ToolDocument("cal__create_event", "Add an event to a calendar", server="cal", local_name="create_event"),
    ToolDocument("cal__list_events", "List the events of a calendar", server="cal", local_name="list_events"),
    ToolDocument("git__git_status", "Show the working tree", server="git", local_name="git_status"),
    ToolDocument("git__git_log", "Show the commits", server="git", local_name="git_log", tags=("history",)),
    ToolDocument("mail__send", "Send an email message", ("Mail"), ("to", "cc"), "recipients", "mail", (), "send"),
    ToolDocument("time__convert", "Convert a time between zones", server="time", local_name="convert"),
    ToolDocument("translateText", "Translate text into another language"),
    ToolDocument("日程表_查询", "查询用户的日程安排"),
    ToolDocument("pogoda", "Показать прогноз погоды для города"),
    ToolDocument("cafe_finder", "Trouve un café à proximité"),
]  # fmt: skip
NAMES = [tool.name for tool in TOOLS]
RANKED = ("keyword", "semantic", "hybrid")


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    return ToolSearchIndex(TOOLS, encoder=HashingEncoder(256))


def found(index: ToolSearchIndex, query: str, strategy: str = "keyword", limit: int = 5) -> list[str]:
    return [hit.name for hit in index.search(query, strategy=strategy, limit=limit)]


@pytest.mark.parametrize("strategy", RANKED)
def test_the_best_comes_first_and_scores_fall(index: ToolSearchIndex, strategy: str) -> None:
    hits = index.search("list events of a calendar", strategy=strategy)
    scores = [hit.score for hit in hits]

    assert [hit.name for hit in hits][:2] == ["cal__list_events", "cal__create_event"]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize("strategy", [*RANKED, "regex"])
def test_equal_scores_go_by_name_also_at_the_limit(strategy: str) -> None:
    texts = [ToolDocument(f"tool_{letter}", "ping the host", local_name="ping") for letter in "dbcae"]
    rest = [ToolDocument(f"rest_{i}", f"something else {i}") for i in range(4)]
    index = ToolSearchIndex([*texts, *rest], encoder=HashingEncoder(256))

    assert found(index, "host", strategy, 3) == ["tool_a", "tool_b", "tool_c"]


@pytest.mark.parametrize("strategy", [*RANKED, "regex"])
@pytest.mark.parametrize("as_selection", [True, False])
def test_a_search_stays_within_the_given_names(index: ToolSearchIndex, strategy: str, as_selection: bool) -> None:
    names = {"cal__create_event", "git__git_log", "not_there"}
    within = Selection.of(names) if as_selection else names

    hits = index.search("calendar", strategy=strategy, within=within)
    assert hits[0].name == "cal__create_event"
    assert {hit.name for hit in hits} <= names  # by meaning, the other may be near enough
    assert index.search("calendar", strategy=strategy, within=[]) == []


def test_what_may_be_seen_fills_the_limit_however_many_better_ones_may_not() -> None:
    tools = [ToolDocument(f"mail_{i:03}", "mail " * (1 + i % 7)) for i in range(300)]
    index = ToolSearchIndex([*tools, ToolDocument("last", "posts letters, and also mail")], encoder=HashingEncoder())

    for strategy in (*RANKED, "regex"):
        assert [hit.name for hit in index.search("mail", strategy=strategy, within=["last"])] == ["last"]


@pytest.mark.parametrize("strategy", [*RANKED, "regex"])
def test_an_empty_index_finds_nothing(strategy: str) -> None:
    index = ToolSearchIndex(encoder=HashingEncoder())

    assert index.search("mail", strategy=strategy) == []
    assert index.search("select:mail", strategy=strategy) == []
    assert len(index) == 0


def test_what_matches_nothing_gives_nothing(index: ToolSearchIndex) -> None:
    for query in ("volcano", "/volcano/", "select:volcano"):
        assert found(index, query) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_1_is_an_error(index: ToolSearchIndex, limit: int) -> None:
    with pytest.raises(BadQueryError, match="limit must be at least 1"):
        index.search("mail", limit=limit)


def test_an_unknown_strategy_is_an_error_that_names_the_known(index: ToolSearchIndex) -> None:
    with pytest.raises(BadQueryError, match="'fuzzy'; use one of auto, hybrid, keyword, semantic, regex"):
        index.search("mail", strategy="fuzzy")


@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_meaning_without_an_encoder_is_an_error_that_says_what_works(strategy: str) -> None:
    with pytest.raises(BadQueryError, match=r"needs an encoder.*use 'keyword'"):
        ToolSearchIndex(TOOLS).search("mail", strategy=strategy)


def test_auto_is_hybrid_with_an_encoder_and_keyword_without(index: ToolSearchIndex) -> None:
    query = "calendar event"
    assert index.search(query) == index.search(query, strategy="hybrid")

    bare = ToolSearchIndex(TOOLS)
    assert bare.search(query) == bare.search(query, strategy="keyword")


def test_a_bad_pattern_is_an_error_in_both_ways_to_write_one(index: ToolSearchIndex) -> None:
    with pytest.raises(BadPatternError):
        index.search("/(mail/")
    with pytest.raises(BadPatternError):
        index.search("(mail", strategy="regex")


@pytest.mark.parametrize("strategy", [*RANKED, "regex"])
def test_a_pattern_between_slashes_is_a_regex_under_any_strategy(index: ToolSearchIndex, strategy: str) -> None:
    assert found(index, "/^git_(log|status)$/", strategy) == ["git__git_log", "git__git_status"]


# Names


@pytest.mark.parametrize("strategy", [*RANKED, "regex"])
def test_select_gives_tools_in_the_asked_order_and_ignores_the_unknown(index: ToolSearchIndex, strategy: str) -> None:
    hits = index.search("select: translateText, nowhere ,git_log,cal__list_events", strategy=strategy)
    assert hits == [
        Hit("translateText", 1.0, "high"),
        Hit("git__git_log", 1.0, "high"),
        Hit("cal__list_events", 1.0, "high"),
    ]


def test_select_is_held_to_the_limit_and_to_the_reach(index: ToolSearchIndex) -> None:
    query = "select:mail__send,git__git_log,translateText"

    assert found(index, query, limit=2) == ["mail__send", "git__git_log"]
    hits = index.search(query, within={"translateText", "mail__send"})
    assert [hit.name for hit in hits] == ["mail__send", "translateText"]


def test_a_tool_out_of_reach_does_not_stand_before_its_namesake_in_reach() -> None:
    """Whoever may not see the tool 'send' gets the one that there is for them."""
    index = ToolSearchIndex([ToolDocument("send"), ToolDocument("mail__send", local_name="send", server="mail")])

    for query in ("select:send", "send"):
        assert [hit.name for hit in index.search(query, within=["mail__send"])] == ["mail__send"]


@pytest.mark.parametrize("strategy", RANKED)
@pytest.mark.parametrize(
    "query", ["mcp__cal__create_event", "cal__create_event", "create_event", "CREATE_EVENT", "mcp__create_event"]
)
def test_a_whole_name_comes_first_however_it_is_prefixed(index: ToolSearchIndex, strategy: str, query: str) -> None:
    assert index.search(query, strategy=strategy)[0] == Hit("cal__create_event", 1.0, "high")


def test_one_name_of_two_servers_gives_both_and_a_full_name_one_of_them() -> None:
    tools = [ToolDocument(f"{server}__read", server=server, local_name="read") for server in ("ftp", "disk")]
    index = ToolSearchIndex(tools)

    assert found(index, "select:read") == ["disk__read", "ftp__read"]
    assert found(index, "select:ftp__read") == ["ftp__read"]
    assert index.search("mcp__ftp__read")[0] == Hit("ftp__read", 1.0, "high")


def test_a_whole_name_is_given_once_and_counts_towards_the_limit(index: ToolSearchIndex) -> None:
    assert found(index, "create_event", limit=1) == ["cal__create_event"]
    names = found(index, "create_event", limit=5)
    assert len(names) == len(set(names))
    assert "cal__list_events" in names  # what is like it comes behind it


# Words


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("calender", "cal__create_event"),  # 1 edit
        ("clandar", None),  # 2 edits, 7 letters: too many
        ("tarnslate", "translateText"),  # two letters swapped
        ("trnslatee", "translateText"),  # 2 edits, 9 letters
        ("tzt", None),  # 3 letters are not guessed at
        ("calen", "cal__create_event"),  # the beginning of the last word
        ("lang", "translateText"),
        ("calendars", "cal__create_event"),  # plural
        ("emails", "mail__send"),
        ("translate text", "translateText"),  # camelCase is two words
        ("translatetext", "translateText"),  # and one
        ("TranslateText", "translateText"),
        ("日程", "日程表_查询"),
        ("погода", "pogoda"),
        ("ПРОГНОЗ", "pogoda"),
        ("cafe", "cafe_finder"),
        ("CAFÉ", "cafe_finder"),
        ("proximite", "cafe_finder"),
        ("recipients", "mail__send"),  # a parameter's text
        ("history", "git__git_log"),  # a tag
    ],
)
def test_words_find_a_tool_or_are_too_far_from_it(index: ToolSearchIndex, query: str, name: str | None) -> None:
    assert found(index, query, limit=1) == ([name] if name else [])


def test_a_word_that_is_there_counts_more_than_one_read_as_a_typo() -> None:
    index = ToolSearchIndex([ToolDocument("a", "form"), ToolDocument("b", "farm")])

    assert found(index, "farm") == ["b"]
    assert found(index, "firm") == ["a", "b"]  # one edit from both


def test_a_query_of_stop_words_alone_is_searched_for_them(index: ToolSearchIndex) -> None:
    """Descriptions drop stop words, names keep them, so that a tool named with some can be found."""
    assert found(index, "what is this") == []
    named = ToolSearchIndex([*TOOLS, ToolDocument("who_am_i", "Identify the user")])
    assert found(named, "who am i") == ["who_am_i"]


@pytest.mark.parametrize("strategy", RANKED)
@pytest.mark.parametrize("query", ["qwzrtp vvkxx", "xyzzy plugh", "zzzzzz", "?!", "🎉"])
def test_gibberish_finds_nothing(index: ToolSearchIndex, strategy: str, query: str) -> None:
    assert found(index, query, strategy) == []


# Hybrid


class Blind:
    """An encoder to which every text is the same, or nothing at all."""

    dimensions = 2

    def __init__(self, *, sees_something: bool) -> None:
        self.id = f"blind:{sees_something}"
        self._row = [1.0, 0.0] if sees_something else [0.0, 0.0]

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return np.array([self._row] * len(texts), np.float32)

    encode_queries = encode_documents


@pytest.mark.parametrize("sees_something", [True, False])
def test_vectors_with_nothing_to_say_leave_the_ranking_to_the_words(sees_something: bool) -> None:
    index = ToolSearchIndex(TOOLS, encoder=Blind(sees_something=sees_something))

    for query in ("list the events of a calendar", "show commits", "send an email"):
        by_both = found(index, query, "hybrid")
        assert by_both
        assert by_both == found(index, query, "keyword")[: len(by_both)]


class Synonyms(HashingEncoder):
    """Knows that a letter is an email."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return super().encode_queries([text.replace("letter", "email message") for text in texts])


def test_words_with_nothing_to_say_leave_the_ranking_to_the_vectors() -> None:
    index = ToolSearchIndex(TOOLS, encoder=Synonyms(256))

    assert found(index, "letter", "keyword") == []
    assert found(index, "letter", "hybrid") == found(index, "letter", "semantic")
    assert found(index, "letter", "hybrid", 1) == ["mail__send"]


class ReadsWords(Synonyms):
    """The same, and can say which words it knows."""

    def __init__(self, *words: str) -> None:
        super().__init__(256)
        self.words = words

    def knows(self, word: str) -> bool:
        return word in self.words


@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_what_an_encoder_says_that_it_does_not_know_finds_nothing(strategy: str) -> None:
    told, untold = (ToolSearchIndex(TOOLS, encoder=ReadsWords(*words)) for words in (("letter",), ()))

    assert found(told, "letter", strategy) == found(ToolSearchIndex(TOOLS, encoder=Synonyms(256)), "letter", strategy)
    assert found(told, "letter", strategy, 1) == ["mail__send"]
    assert found(untold, "letter", strategy) == []


@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_how_far_a_tool_is_ahead_of_another_does_not_hang_on_what_else_there_is(strategy: str) -> None:
    """Only the scale moves, with the size of the catalog and how near all of it is; and that moves all tools alike."""
    tools = [ToolDocument("mail__send", "Send an email message"), ToolDocument("mail__read", "Read an email, or more")]
    rest = [ToolDocument(f"tool_{i}", f"Paint wall {i}") for i in range(40)]
    few, many = (ToolSearchIndex(documents, encoder=Synonyms(256)) for documents in (tools, [*tools, *rest]))

    leads: list[float] = []
    for index in (few, many):
        assert found(index, "letter", strategy)[0] == "mail__send"
        ahead, behind = (index.explain("letter", name, strategy=strategy) for name in ("mail__send", "mail__read"))
        leads.append(ahead.raw - behind.raw)
    assert leads[0] > 0.1
    assert leads[1] == pytest.approx(leads[0], abs=1e-5)


def test_one_tool_alone_scores_the_same_whatever_was_there_before() -> None:
    tool = ToolDocument("mail__send", "Send an email message to somebody")
    alone = ToolSearchIndex([tool], encoder=HashingEncoder(64))
    left = ToolSearchIndex([tool, *(t for t in TOOLS if t.name != tool.name)], encoder=HashingEncoder(64))
    left.update(remove=[name for name in NAMES if name != tool.name])

    for query in ("send email", "message", "somebody email"):
        (expected,), (hit,) = alone.search(query), left.search(query)
        assert hit.score == pytest.approx(expected.score, abs=1e-6)


# Changes


def test_a_tool_is_found_from_its_adding_to_its_removal(index: ToolSearchIndex) -> None:
    index = ToolSearchIndex(TOOLS, encoder=HashingEncoder(256))
    index.update([ToolDocument("volcano_watch", "Watch a volcano")])
    assert found(index, "volcano", "auto", 1) == ["volcano_watch"]
    assert "volcano_watch" in index

    index.update([ToolDocument("volcano_watch", "Watch a glacier")])
    assert found(index, "glacier", "semantic", 1) == ["volcano_watch"]
    assert len(index) == len(TOOLS) + 1

    index.update(remove=["volcano_watch", "never_there"])
    assert "volcano_watch" not in found(index, "volcano glacier", "auto", 20)
    assert sorted(index.names()) == sorted(NAMES)


def test_the_last_tool_with_words_in_a_field_can_go() -> None:
    """Its row stays, dead, in a segment whose field is then empty on average."""
    index = ToolSearchIndex([ToolDocument(f"mail_{i}") for i in range(3)] + [ToolDocument("post", title="mail")])
    index.update(remove=["post"])

    assert found(index, "mail") == ["mail_0", "mail_1", "mail_2"]


def test_of_two_documents_of_one_name_the_last_counts() -> None:
    index = ToolSearchIndex([ToolDocument("a", "volcano"), ToolDocument("a", "glacier")])

    assert (found(index, "volcano"), found(index, "glacier"), len(index)) == ([], ["a"], 1)


class Failing(HashingEncoder):
    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        if any("volcano" in text for text in texts):
            raise EncoderError("out of memory")
        return super().encode_documents(texts)


def test_an_encoder_that_fails_leaves_the_index_as_it_was() -> None:
    index = ToolSearchIndex(TOOLS, encoder=Failing(256))
    before = index.search("calendar")

    with pytest.raises(EncoderError):
        index.update([ToolDocument("volcano_watch", "Watch a volcano")], remove=["cal__create_event"])
    assert index.search("calendar") == before
    assert sorted(index.names()) == sorted(NAMES)


def test_an_encoder_of_other_dimensions_than_it_promised_is_an_error() -> None:
    encoder = HashingEncoder(64)
    encoder.dimensions = 65
    encoder.encode_documents = lambda texts: np.zeros((len(texts), 64), np.float32)  # type: ignore[method-assign]
    with pytest.raises(EncoderError, match="promised 65 dimensions"):
        ToolSearchIndex(TOOLS, encoder=encoder)


def test_an_index_is_true_while_it_is_empty() -> None:
    assert ToolSearchIndex()
    assert len(ToolSearchIndex()) == 0


def test_each_part_of_a_request_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are looked for with the request as a whole, all at once, and each by itself, which finds the same."""
    index = ToolSearchIndex(
        [ToolDocument("send_message", "Send a message"), ToolDocument("list_rooms", "List the rooms")],
        encoder=HashingEncoder(),
    )
    asked: list[list[bytes]] = []
    near = VectorPart.near_each

    def noted(self: VectorPart, queries: FloatArray, *more: Any, **named: Any) -> Any:
        asked.append([query.tobytes() for query in queries])
        return near(self, queries, *more, **named)

    monkeypatch.setattr(VectorPart, "near_each", noted)
    found = [hit.name for hit in index.search("send a message, and list the rooms")]

    assert sorted(found) == ["list_rooms", "send_message"]
    assert [len(set(queries)) for queries in asked] == [3]


def test_a_search_that_asks_a_model_of_somebody_else_is_not_quick() -> None:
    built_in = ToolSearchIndex(TOOLS, encoder=open_encoder("built-in"))
    assert built_in.is_quick("send a mail")
    assert not built_in.is_quick("send a mail", "regex")
    assert not ToolSearchIndex(TOOLS, encoder=HashingEncoder(256)).is_quick("send a mail")

    built_in.reader = FakeReader()
    assert not built_in.is_quick("send a mail")


def test_a_search_is_quick_over_few_tools_and_for_a_short_request(monkeypatch: pytest.MonkeyPatch) -> None:
    index = ToolSearchIndex(TOOLS)
    assert index.is_quick("send a mail")
    assert not index.is_quick("send a mail " * 20)
    monkeypatch.setattr("toolsearch_indexes.index._QUICK_TOOLS", len(TOOLS) - 1)
    assert not index.is_quick("send a mail")
