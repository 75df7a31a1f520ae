"""The engine: it follows its catalog, keeps to a caller's reach, and says when it has to do without its encoder."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, Reach, SessionOptions, Tool, ToolDefinition, ToolReference, ToolSearch
from toolsearch.errors import BadQueryError, BadSettingError, EncoderError, MissingExtraError, UnknownToolError
from toolsearch.tools.definition import ToolOrigin
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder


def catalog() -> Catalog:
    return Catalog(
        [
            ToolDefinition("cal__list", "List the events of a calendar.\n\nNewest first.", server="cal"),
            ToolDefinition("mail__list", "List the messages of a mailbox", server="mail", tags=("read",)),
            ToolDefinition("mail__send", "Send an email message", server="mail", tags=("write",)),
            ToolDefinition("pay__send", "Send money to somebody", server="pay", tags=("write",)),
        ]
    )


def names(found: Sequence[ToolReference]) -> list[str]:
    return [reference.name for reference in found]


def test_a_reference_has_name_score_and_the_first_paragraph() -> None:
    found = ToolSearch(catalog()).search("calendar events")[0]
    assert (found.name, found.summary, found.confidence) == ("cal__list", "List the events of a calendar.", "high")
    assert 0 < found.score <= 1


def test_a_long_summary_is_cut_at_a_word_to_300_characters() -> None:
    engine = ToolSearch(Catalog([ToolDefinition("long", "volcano " * 100)]))
    (found,) = engine.search("volcano")
    assert found.summary == "volcano " * 36 + "volcano…"
    assert len(found.summary) <= 300


def test_a_reference_says_whether_anything_can_run_the_tool() -> None:
    def send_telegram() -> None:
        """Send a telegram."""

    origin = ToolOrigin("post", "send_parcel", {})
    tools: list[object] = [ToolDefinition("send_letter"), Tool(ToolDefinition("send_parcel"), origin=origin)]
    found = ToolSearch(Catalog([send_telegram, *tools])).search("select:send_telegram,send_letter,send_parcel")
    assert [(each.name, each.is_callable) for each in found] == [
        ("send_telegram", True),
        ("send_letter", False),
        ("send_parcel", True),
    ]


def test_the_index_follows_the_catalog() -> None:
    tools = catalog()
    engine = ToolSearch(tools, encoder=HashingEncoder())
    tools.add(ToolDefinition("watch", "Watch a volcano"))
    assert names(engine.search("volcano", limit=1)) == ["watch"]

    tools.replace(ToolDefinition("watch", "Watch a glacier"))
    assert names(engine.search("volcano", strategy="keyword")) == []
    assert engine.search("glacier")[0].summary == "Watch a glacier"

    tools.remove("watch")
    for query in ("glacier", "watch", "select:watch", "/watch/"):
        assert "watch" not in names(engine.search(query))


def test_an_explanation_knows_reach_server_and_the_least_score() -> None:
    strict = ToolSearch(catalog(), options=SessionOptions(min_score=0.9999), encoder=None)
    query = "send an email"

    assert strict.explain(query, "mail__send").outcome == "below min_score"
    assert strict.explain(query, "mail__send", server="pay").outcome == "out of reach"
    assert strict.explain(query, "mail__send", reach=Reach.parse(deny=["mail__*"])).outcome == "out of reach"
    assert ToolSearch(catalog()).explain(query, "mail__send").place == 1
    assert strict.explain("select:mail__send", "mail__send").place == 1


def test_a_closed_engine_follows_no_more() -> None:
    tools = catalog()
    ToolSearch(tools).close()
    tools.add(ToolDefinition("watch", "Watch a volcano"))  # tells nobody


# Reach and server


def test_only_tools_in_reach_are_found_in_every_form_of_query() -> None:
    engine = ToolSearch(catalog(), encoder=HashingEncoder())
    reach = Reach.parse(["tag:write"], ["server:pay"])

    for query in ("list send", "send", "mail__send", "pay__send", "select:pay__send,mail__send", "/send|list/"):
        for strategy in engine.strategies:
            assert names(engine.search(query, strategy=strategy, reach=reach)) in (["mail__send"], [])
    assert names(engine.search("select:cal__list", reach=reach)) == []


def test_a_server_narrows_a_search_to_its_tools() -> None:
    engine = ToolSearch(catalog(), encoder=None)
    assert names(engine.search("list", server="mail")) == ["mail__list"]
    assert names(engine.search("select:send", server="pay")) == ["pay__send"]


def test_an_unknown_server_is_an_error_that_names_only_servers_in_reach() -> None:
    engine = ToolSearch(catalog())
    with pytest.raises(BadQueryError, match=r"no server 'bank'; there are: cal, mail, pay$"):
        engine.search("list", server="bank")
    with pytest.raises(BadQueryError, match=r"no server 'pay'; there are: cal, mail$"):
        engine.search("list", server="pay", reach=Reach.parse(deny=["server:pay"]))
    with pytest.raises(BadQueryError, match=r"there are: none$"):
        engine.search("list", server="pay", reach=Reach.parse(["nothing"]))


def test_a_tool_that_leaves_the_reach_when_it_is_replaced_is_found_no_more() -> None:
    tools = catalog()
    engine = ToolSearch(tools)
    reach = Reach.parse(["tag:read"])
    assert names(engine.search("messages", reach=reach)) == ["mail__list"]

    tools.replace(ToolDefinition("mail__list", "List the messages of a mailbox", server="mail", tags=("secret",)))
    assert names(engine.search("messages", reach=reach)) == []
    tools.replace(ToolDefinition("mail__list", "List the messages of a mailbox", server="mail", tags=("read",)))
    assert names(engine.search("messages", reach=reach)) == ["mail__list"]


# Strategies and encoders


@pytest.mark.parametrize(
    ("strategy", "encoder", "able"),
    [
        ("auto", HashingEncoder(), ("hybrid", "keyword", "semantic", "regex")),
        ("auto", None, ("keyword", "regex")),
        ("semantic", HashingEncoder(), ("semantic", "hybrid", "keyword", "regex")),
        ("keyword", HashingEncoder(), ("keyword", "regex")),
        ("regex", None, ("regex", "keyword")),
    ],
)
def test_the_strategies_that_can_be_named_come_default_first(
    strategy: str, encoder: HashingEncoder | None, able: tuple[str, ...]
) -> None:
    assert ToolSearch(catalog(), strategy=strategy, encoder=encoder).strategies == able


def test_meaning_is_searched_for_unless_that_is_ruled_out() -> None:
    assert ToolSearch(catalog()).strategies == ("hybrid", "keyword", "semantic", "regex")
    assert names(ToolSearch(catalog()).search("transfer cash", limit=1)) == ["pay__send"]
    assert names(ToolSearch(catalog(), encoder=None).search("transfer cash")) == []


def test_the_engines_strategy_ranks_unless_a_search_names_another() -> None:
    engine = ToolSearch(catalog(), strategy="regex")
    assert names(engine.search("^(cal|mail)__list$")) == ["cal__list", "mail__list"]
    assert names(engine.search("money", strategy="keyword")) == ["pay__send"]


def test_bad_strategies_are_refused_at_the_start_and_in_a_search() -> None:
    with pytest.raises(BadSettingError, match="unknown strategy 'fuzzy'; use one of auto, hybrid"):
        ToolSearch(catalog(), strategy="fuzzy")
    with pytest.raises(BadSettingError, match="'semantic' needs an encoder"):
        ToolSearch(catalog(), strategy="semantic", encoder=None)
    with pytest.raises(BadQueryError, match="unknown strategy 'fuzzy'"):
        ToolSearch(catalog()).search("mail", strategy="fuzzy")
    with pytest.raises(BadQueryError, match="needs an encoder"):
        ToolSearch(catalog(), encoder=None).search("mail", strategy="hybrid")


def extra_missing(spec: str | Path) -> HashingEncoder:
    raise MissingExtraError(f"the encoder {spec}", "semantic")


def model_missing(spec: str | Path) -> HashingEncoder:
    raise EncoderError(f"there is no model {spec}")


@pytest.mark.parametrize("opening", [extra_missing, model_missing])
def test_auto_does_without_an_encoder_that_cannot_be_loaded_and_says_so(
    monkeypatch: pytest.MonkeyPatch, opening: Callable[[str], HashingEncoder], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", opening)
    with caplog.at_level(logging.WARNING):
        engine = ToolSearch(catalog(), encoder="some/model")

    assert names(engine.search("money")) == ["pay__send"]
    (note,) = engine.notes
    assert note.startswith("indexed by keyword only: ")
    assert "some/model" in note
    assert note in caplog.text


@pytest.mark.parametrize("strategy", ["hybrid", "semantic"])
def test_who_asks_for_meaning_is_told_that_the_encoder_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", extra_missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'toolsearch\[semantic\]'"):
        ToolSearch(catalog(), strategy=strategy, encoder="some/model")


def test_an_encoder_that_no_search_would_use_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", extra_missing)
    assert ToolSearch(catalog(), strategy="keyword", encoder="some/model").notes == []


class Failing(HashingEncoder):
    """Works until it is told to fail."""

    def __init__(self, *, documents: bool = False, queries: bool = False) -> None:
        super().__init__()
        self.documents, self.queries = documents, queries

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        if self.documents:
            raise EncoderError("out of memory")
        return super().encode_documents(texts)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        if self.queries:
            raise EncoderError("out of memory")
        return super().encode_documents(texts)


@pytest.mark.parametrize("keep", [True, False])
def test_auto_does_without_an_encoder_that_fails_on_the_tools(keep: bool, tmp_path: Path) -> None:
    engine = ToolSearch(catalog(), encoder=Failing(documents=True), index_dir=tmp_path if keep else None)

    assert [note.rpartition(": ")[2] for note in engine.notes] == ["out of memory"]
    assert engine.strategies == ("keyword", "regex")
    assert names(engine.search("money")) == ["pay__send"]
    engine.catalog.add(ToolDefinition("watch", "Watch a volcano"))
    assert names(engine.search("volcano")) == ["watch"]

    with pytest.raises(EncoderError, match="out of memory"):
        ToolSearch(catalog(), strategy="hybrid", encoder=Failing(documents=True))


def test_auto_searches_by_keyword_while_the_encoder_fails_on_queries() -> None:
    encoder = Failing(queries=True)
    engine = ToolSearch(catalog(), encoder=encoder)

    for _ in range(2):
        assert names(engine.search("money")) == ["pay__send"]
    assert (engine.explain("money", "pay__send").place, engine.explain("money", "pay__send").strategy) == (1, "keyword")
    assert engine.notes == ["searched by keyword only: out of memory"]  # once
    with pytest.raises(EncoderError):
        engine.search("money", strategy="hybrid")
    encoder.queries = False
    assert engine.search("money", strategy="hybrid")[0].name == "pay__send"


def test_a_change_that_the_encoder_fails_on_is_made_up_for_with_the_next(caplog: pytest.LogCaptureFixture) -> None:
    """The failure is nobody's exception, since the change of the catalog is a fact; it is logged."""
    encoder = Failing()
    engine = ToolSearch(catalog(), encoder=encoder)
    encoder.documents = True
    engine.catalog.add(ToolDefinition("watch", "Watch a volcano"), ToolDefinition("gone", "A geyser"))
    engine.catalog.remove("mail__send")
    assert "failed to follow a change" in caplog.text
    assert names(engine.search("email", strategy="keyword")) == []

    encoder.documents = False
    engine.catalog.remove("gone")
    assert names(engine.search("volcano", strategy="semantic", limit=1)) == ["watch"]
    assert sorted(engine.index.names()) == sorted(engine.catalog.names())


# Saving, views, threads


def test_there_is_nowhere_to_save_without_an_index_directory() -> None:
    with pytest.raises(BadSettingError, match="give the engine an index_dir"):
        ToolSearch(catalog()).save()


def test_an_unknown_tool_has_near_names_in_reach_only() -> None:
    view = ToolSearch(catalog()).view(Reach.parse(deny=["server:mail"]))
    with pytest.raises(UnknownToolError) as raised:
        view.get("mail__sent")
    assert set(raised.value.near) <= {"pay__send", "cal__list"}


def test_50_threads_search_while_one_changes_the_catalog() -> None:
    """Whatever moment a search sees, it finds what was always there, and never what is out of reach."""
    tools = catalog()
    engine = ToolSearch(tools, encoder=HashingEncoder())
    reach = Reach.parse(deny=["secret_*"])
    failures: list[object] = []
    together = threading.Barrier(51)

    def search(number: int) -> None:
        together.wait()
        for _ in range(20):
            try:
                found = names(
                    engine.search("send money volcano", limit=50, strategy=strategies[number % 3], reach=reach)
                )
                if "pay__send" not in found or any(name.startswith("secret") for name in found):
                    failures.append(found)
            except Exception as error:  # noqa: BLE001  none is expected
                failures.append(error)

    strategies = ("keyword", "hybrid", "semantic")
    threads = [threading.Thread(target=search, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    together.wait()
    for i in range(24):
        tools.add(ToolDefinition(f"secret_{i}", "Watch a volcano"), ToolDefinition(f"open_{i}", "Watch a volcano"))
        if i % 3:
            tools.remove(f"secret_{i}", f"open_{i - i % 3}" if i % 3 == 1 else f"open_{i}")
    for thread in threads:
        thread.join()

    assert failures == []
    assert sorted(engine.index.names()) == sorted(tools.names())


def test_a_search_can_say_how_many_tools_there_are_beside_those_that_it_gives() -> None:
    engine = ToolSearch(catalog())

    answer = engine.search_with_total("/send|list/", limit=2)
    assert (names(answer.references), answer.total_matches) == (names(engine.search("/send|list/", limit=2)), 4)
    assert engine.search_with_total("/send|list/", reach=Reach.parse(deny=["server:mail"])).total_matches == 2
    assert engine.search_with_total("/nothing/").total_matches == 0
    with pytest.raises(BadQueryError, match="limit must be at least 1"):
        engine.search_with_total("list", limit=0)


@pytest.mark.parametrize("limit", ["3", 1.5, 2.0, True, None, float("inf"), 0, -1])
def test_a_limit_is_a_whole_number_of_one_or_more(limit: Any) -> None:
    engine = ToolSearch(catalog())
    session = engine.session("a")
    for search in (engine.search, engine.search_with_total, engine.index.search):
        with pytest.raises(BadQueryError, match=f"limit must be (a whole number|at least 1), not {limit!r}"):
            search("mail", limit=limit)
    if limit is not None:  # as the options say
        with pytest.raises(BadQueryError, match="limit must be"):
            session.search("mail", limit=limit)


@pytest.mark.parametrize("wrong", [None, b"mail", 3, ["mail"]])
def test_a_query_is_a_text_and_so_are_names(wrong: Any) -> None:
    engine = ToolSearch(catalog())
    for ask in (engine.search, engine.search_with_total, engine.session("a").search, engine.index.search):
        with pytest.raises(BadQueryError, match="the query must be a text, not "):
            ask(wrong, limit=3)
    with pytest.raises(BadQueryError, match="the query must be a text, not "):
        engine.explain(wrong, "mail__send")
    with pytest.raises(BadQueryError, match="the name of a tool must be a text, not "):
        engine.explain("mail", wrong)
    if wrong is not None:  # every server
        with pytest.raises(BadQueryError, match="the name of a server must be a text, not "):
            engine.search("mail", server=wrong)
