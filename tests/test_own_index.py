"""An index of one's own in place of the built-in one: what it has to provide, and what the engine still guarantees."""

# ruff: noqa: ARG002  the index has every parameter of the protocol, and ignores some
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, PassThrough, Reach, SessionOptions, ToolDefinition, ToolSearch, UsageLog
from toolsearch.errors import BadQueryError, BadSettingError
from toolsearch_indexes.documents import Explanation, Hit, ToolDocument
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.tool_index import ExplainsSearches, ToolIndex

TOOLS = [
    ToolDefinition("git__log", "Show the commits", server="git"),
    ToolDefinition("mail__send", "Send a letter", server="mail"),
    ToolDefinition("mail__list", "List the letters", server="mail"),
]


class SubstringIndex:
    """Finds the tools whose description holds the query; it takes no notice of what may be found."""

    rankings = ("keyword",)

    def __init__(self) -> None:
        self.documents: dict[str, ToolDocument] = {}

    def __len__(self) -> int:
        return len(self.documents)

    def resolve_strategy(self, strategy: str) -> str:
        if strategy not in ("auto", "keyword"):
            raise BadQueryError(f"only by keyword, not by {strategy}")
        return "keyword"

    def names(self) -> list[str]:
        return list(self.documents)

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        for name in remove:
            self.documents.pop(name, None)
        self.documents.update({document.name: document for document in add})

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: str = "auto",
        within: Selection | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> list[Hit]:
        matching = sorted(name for name, document in self.documents.items() if query in document.description)
        return [Hit(name, 0.5) for name in matching[:limit]]


class ExplainingIndex(SubstringIndex):
    def explain(
        self,
        query: str,
        name: str,
        *,
        strategy: str = "auto",
        within: Selection | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> Explanation:
        return Explanation(name, "keyword", "found", place=1, score=0.5)


def engine(index: ToolIndex | None = None) -> ToolSearch:
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    return ToolSearch(TOOLS, index=SubstringIndex() if index is None else index, options=options)


def test_skills_are_found_beside_the_hits_of_an_index_of_ones_own() -> None:
    skill = ToolDefinition("team__letters", "Answer the letters of a customer", server="team", kind="skill")
    searched = ToolSearch([*TOOLS, skill], index=SubstringIndex())

    assert {found.name for found in searched.search("letters")} == {"mail__list", "team__letters"}
    assert [found.name for found in searched.search("letters", kinds=["skill"])] == ["team__letters"]
    assert set(searched.index.names()) == {tool.name for tool in TOOLS}


def test_an_engine_searches_with_an_index_of_ones_own() -> None:
    searched = engine()

    assert [found.name for found in searched.search("letter")] == ["mail__list", "mail__send"]
    assert searched.search("letter")[0].summary == "List the letters"
    assert searched.strategies == ("keyword",)
    assert searched.session("a").search("commits")[0].name == "git__log"
    with pytest.raises(BadQueryError, match="only by keyword, not by regex"):
        searched.search("letter", strategy="regex")


def test_an_own_index_holds_what_the_catalog_holds_from_its_start_on() -> None:
    index, catalog = SubstringIndex(), Catalog(TOOLS)
    index.update([ToolDocument("old", "a letter of long ago")])
    ToolSearch(catalog, index=index)
    assert sorted(index.names()) == ["git__log", "mail__list", "mail__send"]

    catalog.remove("mail__list")
    catalog.add(ToolDefinition("post", "Post a letter"))
    catalog.replace(ToolDefinition("git__log", "Show a letter"))

    assert {name: each.description for name, each in index.documents.items()} == {
        "git__log": "Show a letter",
        "mail__send": "Send a letter",
        "post": "Post a letter",
    }


def test_an_own_index_cannot_find_what_is_out_of_reach() -> None:
    searched = engine()

    assert [found.name for found in searched.search("letter", reach=Reach.parse(deny=["mail__list"]))] == ["mail__send"]
    assert searched.search("letter", server="git") == []
    assert searched.search_with_total("letter", reach=Reach.parse(deny=["mail__list"])).total_matches == 1


def test_an_own_index_explains_its_results_if_it_can() -> None:
    assert engine(ExplainingIndex()).explain("letter", "mail__send").place == 1
    assert isinstance(ExplainingIndex(), ExplainsSearches)
    with pytest.raises(BadSettingError, match="a SubstringIndex, has no method 'explain'"):
        engine().explain("letter", "mail__send")


def test_what_an_own_index_cannot_do_is_refused_at_the_start(tmp_path: Path) -> None:
    class Odd(SubstringIndex):
        rankings = ("keyword", "magic")

    class Mute(SubstringIndex):
        rankings = ()

    for index in (Odd(), Mute()):
        with pytest.raises(BadSettingError, match="an index ranks by some of hybrid, keyword, semantic, regex"):
            ToolSearch(TOOLS, index=index)
    with pytest.raises(BadSettingError, match="cannot rank by 'hybrid'; it can by keyword"):
        ToolSearch(TOOLS, index=SubstringIndex(), strategy="hybrid")
    with pytest.raises(BadSettingError, match="index_dir"):
        ToolSearch(TOOLS, index=SubstringIndex(), index_dir=tmp_path)
    with pytest.raises(BadSettingError, match="leave out usage, or index"):
        ToolSearch(TOOLS, index=SubstringIndex(), usage=UsageLog())


def test_only_an_index_that_says_so_is_sure_of_what_it_found() -> None:
    class SureIndex(SubstringIndex):
        def search(self, query: str, **options: Any) -> list[Hit]:
            return [Hit(hit.name, hit.score, "high") for hit in super().search(query, **options)]

    for index, confidence in ((SubstringIndex(), "low"), (SureIndex(), "high")):
        assert engine(index).search("commits")[0].confidence == confidence
