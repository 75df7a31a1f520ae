"""Skills, prompts and resources in a search: found beside tools, within a reach, and without moving the tools."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.skills import content
from toolsearch import Catalog, Reach, Tool, ToolDefinition, ToolReference, ToolSearch
from toolsearch.access.principals import Principal
from toolsearch.catalog.indexing import document_of
from toolsearch.documents.skills import SKILL_SCHEMA
from toolsearch.errors import BadQueryError, BadSettingError, EncoderError
from toolsearch.tools.definition import KINDS, EntryKind
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.queries import Strategy

TOOLS = ["statistics", "textwrap", "calendar", "shutil", "colorsys"]
QUERIES = [
    "median of numbers", "wrap a long text at 70 characters", "which weekday is the first of may", "copy a folder",
    "refund a customer", "select:statistics__median,textwrap__wrap", "/copy/", "hsv", "what is the weather",
]  # fmt: skip


def names(found: Sequence[ToolReference]) -> list[str]:
    return [reference.name for reference in found]


def tools() -> Catalog:
    catalog = Catalog()
    for module in TOOLS:
        catalog.load(f"module:{module}")
    return catalog


def five_hundred(catalog: Catalog) -> list[Tool]:
    """Entries of three kinds that say what the tools of *catalog* say, so that they compete with all of them."""
    kinds: list[EntryKind] = ["skill", "prompt", "resource"]
    said = [tool.definition.description or tool.name for tool in catalog]
    return [
        content(
            f"team__entry-{n}", f"{said[n % len(said)]} {said[n * 7 % len(said)]}", kind=kinds[n % 3], server="team"
        )
        for n in range(500)
    ]


@pytest.fixture(scope="module")
def alone() -> ToolSearch:
    return ToolSearch(tools())


@pytest.fixture(scope="module")
def beside() -> ToolSearch:
    catalog = tools()
    catalog.add(*five_hundred(catalog))
    return ToolSearch(catalog)


# ---- nothing of tools moves


@pytest.mark.parametrize("strategy", ["auto", "hybrid", "semantic", "keyword"])
def test_hits_of_tools_are_byte_for_byte_the_same_beside_five_hundred_other_entries(
    alone: ToolSearch, beside: ToolSearch, strategy: Strategy
) -> None:
    for query in QUERIES:
        expected = alone.search(query, limit=30, strategy=strategy)
        assert beside.search(query, limit=30, strategy=strategy, kinds=["tool"]) == expected
        response = beside.search_with_total(query, limit=3, strategy=strategy, kinds=["tool"])
        assert response == alone.search_with_total(query, limit=3, strategy=strategy)


def test_the_explanation_of_a_tool_is_the_same_beside_other_entries(alone: ToolSearch, beside: ToolSearch) -> None:
    for name in ("statistics__median", "textwrap__wrap", "shutil__copy"):
        for query in QUERIES[:4]:
            assert beside.explain(query, name) == alone.explain(query, name)


def test_the_files_of_a_stored_index_of_tools_are_the_same_beside_other_entries(tmp_path: Path) -> None:
    catalog = tools()
    ToolSearch(catalog, index_dir=tmp_path / "alone").close()
    catalog.add(*five_hundred(catalog))
    ToolSearch(catalog, index_dir=tmp_path / "beside").close()

    def files(folder: str) -> dict[str, bytes]:
        [generation] = (tmp_path / folder).glob("generation-*")
        index = {"catalog.sqlite", "generation.json"}
        return {file.name: file.read_bytes() for file in sorted(generation.iterdir()) if file.name not in index}

    assert files("beside") == files("alone")
    assert "manifest.json" in files("beside")


# ---- what is found


def small() -> list[Tool]:
    return [
        Tool(ToolDefinition("pay__refund", "Refund a payment", server="pay")),
        Tool(ToolDefinition("pay__charge", "Charge a card", server="pay")),
        content("team__refunds", "Refund a customer by the rules of the company", server="team"),
        content("acme__onboarding", "Welcome a new customer", server="acme"),
        content("acme__ask", "Ask a customer for feedback on a refund", kind="prompt", server="acme"),
        content("acme__policy", "The refund policy of the company", kind="resource", server="acme"),
    ]


@pytest.fixture
def engine() -> ToolSearch:
    return ToolSearch(small())


def test_a_search_finds_tools_and_skills_unless_it_is_told_other_kinds(engine: ToolSearch) -> None:
    found = {(reference.name, reference.kind) for reference in engine.search("refund a customer", limit=20)}
    assert {("pay__refund", "tool"), ("team__refunds", "skill")} <= found
    assert {kind for _, kind in found} == {"tool", "skill"}


@pytest.mark.parametrize("kinds", [["tool"], ["skill"], ["prompt"], ["resource"], ["skill", "prompt"], list(KINDS)])
def test_only_the_kinds_that_are_asked_for_are_found(engine: ToolSearch, kinds: list[EntryKind]) -> None:
    found = engine.search("refund", limit=20, kinds=kinds)
    assert {reference.kind for reference in found} == set(kinds)
    assert engine.search_with_total("refund", limit=1, kinds=kinds).total_matches == len(found)


def test_the_order_of_kinds_does_not_matter(engine: ToolSearch) -> None:
    for kinds in (["skill", "tool"], {"tool", "skill"}, ("tool", "skill", "skill")):
        assert engine.search("refund", kinds=kinds) == engine.search("refund")  # type: ignore[arg-type]


@pytest.mark.parametrize("kinds", [[], ["skills"], ["tool", ""], "skill", None, [3]])
def test_a_kind_that_there_is_not_is_an_error(engine: ToolSearch, kinds: object) -> None:
    with pytest.raises(BadSettingError, match="kind"):
        engine.search("refund", kinds=kinds)  # type: ignore[arg-type]


def test_an_entry_is_found_by_its_name_and_by_a_pattern(engine: ToolSearch) -> None:
    assert names(engine.search("select:team__refunds")) == ["team__refunds"]
    assert names(engine.search("select:refunds")) == ["team__refunds"]
    assert set(names(engine.search("select:pay__charge,team__refunds"))) == {"pay__charge", "team__refunds"}
    assert names(engine.search("select:acme__policy")) == []
    assert names(engine.search("select:acme__policy", kinds=["resource"])) == ["acme__policy"]
    assert set(names(engine.search("/refund/"))) == {"pay__refund", "team__refunds"}


@pytest.mark.parametrize("strategy", ["hybrid", "semantic", "keyword"])
def test_every_strategy_finds_skills(strategy: Strategy) -> None:
    engine = ToolSearch(small())
    assert names(engine.search("welcome a new customer", limit=1, strategy=strategy)) == ["acme__onboarding"]


def test_a_catalog_of_skills_alone_is_searched() -> None:
    with ToolSearch([content("team__refunds", "Refund a customer", server="team")]) as engine:
        assert names(engine.search("refund a customer")) == ["team__refunds"]
        assert engine.search("refund a customer", kinds=["tool"]) == []


def test_all_skills_share_a_parameter_by_which_none_is_found() -> None:
    document = document_of(ToolDefinition("team__refunds", "Refund", SKILL_SCHEMA, server="team", kind="skill"))
    assert document == document_of(ToolDefinition("team__refunds", "Refund", server="team", kind="skill"))
    assert document != document_of(ToolDefinition("team__refunds", "Refund", SKILL_SCHEMA, server="team"))


def test_what_else_a_skill_says_is_searched_and_that_of_no_tool() -> None:
    skill = ToolDefinition("team__refunds", "Refund", kind="skill", text="walrus")
    assert document_of(skill).parameter_text == "walrus"
    assert document_of(ToolDefinition("team__refunds", "Refund", text="walrus")).parameter_text == ""


# ---- reach


REACHES: list[tuple[list[str], list[str], set[str]]] = [
    (["*"], [], {"pay__refund", "team__refunds"}),
    (["kind:skill"], [], {"team__refunds"}),
    (["*"], ["kind:skill"], {"pay__refund"}),
    (["kind:tool"], [], {"pay__refund"}),
    (["server:team"], [], {"team__refunds"}),
    (["*"], ["server:team"], {"pay__refund"}),
    (["pay__*"], [], {"pay__refund"}),
    (["kind:skill"], ["team__*"], set()),
    (["kind:prompt"], [], set()),
]


@pytest.mark.parametrize(("allow", "deny", "found"), REACHES)
def test_nothing_out_of_reach_is_found_explained_or_counted(
    engine: ToolSearch, allow: list[str], deny: list[str], found: set[str]
) -> None:
    reach = Reach.parse(allow, deny)
    response = engine.search_with_total("refund a customer", limit=1, reach=reach)
    assert {name for name in names(engine.search("refund", limit=20, reach=reach)) if "refund" in name} == found
    for name in ("pay__refund", "team__refunds"):
        assert bool(engine.search(f"select:{name}", reach=reach)) == (name in found)
        outcome = engine.explain("refund a customer", name, reach=reach).outcome
        assert (outcome != "out of reach") == (name in found)
        stranger = Principal("ada", reach=reach)
        told = engine.explain("refund a customer", name, principal=stranger).outcome
        assert (told != "no such tool") == (name in found)
    assert response.total_matches == len(engine.search("refund a customer", limit=20, reach=reach))


def test_one_server_is_searched_for_all_that_it_has(engine: ToolSearch) -> None:
    assert names(engine.search("refund", server="team")) == ["team__refunds"]
    found = names(engine.search("refund", server="acme", kinds=KINDS))
    assert {"acme__ask", "acme__policy"} <= set(found) <= {"acme__ask", "acme__policy", "acme__onboarding"}
    with pytest.raises(BadQueryError, match="there is no server 'teem'"):
        engine.search("refund", server="teem")
    with pytest.raises(BadQueryError):
        engine.search("refund", server="team", reach=Reach.parse(deny=["kind:skill"]))


def test_a_skill_is_explained_by_its_place_among_all_but_tools(engine: ToolSearch) -> None:
    explained = engine.explain("refund a customer", "team__refunds")
    assert (explained.tool, explained.outcome, explained.place) == ("team__refunds", "found", 1)
    assert {match.word for match in explained.words} == {"refund", "customer"}


# ---- changes


def test_the_index_follows_every_change_of_contents() -> None:
    catalog = Catalog([ToolDefinition("tool", "Watch a glacier")])
    engine = ToolSearch(catalog, encoder=HashingEncoder())

    def skills(query: str) -> list[str]:
        return names(engine.search(query, kinds=["skill"]))

    assert skills("volcano") == []
    catalog.add(content("climb", "Climb a volcano"))
    assert skills("volcano") == ["climb"]
    catalog.put(content("climb", "Climb a mountain"))
    assert (skills("volcano"), skills("mountain")) == ([], ["climb"])
    catalog.change([content("dive", "Dive under a volcano")], ["climb"])
    assert (skills("volcano"), skills("mountain")) == (["dive"], [])
    catalog.sync("a", [content("fly", "Fly over a volcano")])
    assert set(skills("volcano")) == {"dive", "fly"}
    catalog.sync("a", [])
    catalog.remove("dive")
    for query in ("volcano", "select:dive", "/fly/"):
        assert skills(query) == []
    assert names(engine.search("glacier")) == ["tool"]


def test_only_what_is_new_is_embedded() -> None:
    embedded: list[str] = []

    class Counting(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> FloatArray:
            embedded.extend(text for text in texts if "(ours)" in text)
            return super().encode_documents(texts)

    catalog = Catalog([content(f"skill-{n}", f"Does thing {n} (ours)") for n in range(3)])
    with ToolSearch(catalog, encoder=Counting()):
        assert len(embedded) == len(set(embedded)) > 3
        embedded.clear()
        catalog.add(ToolDefinition("tool", "Does nothing"))
        catalog.remove("skill-0")
        assert embedded == []
        catalog.sync("a", [content("more", "Does more (ours)")])
        catalog.sync("a", [content("more", "Does more (ours)")])
        assert len(embedded) == len(set(embedded)) > 0
        assert all("more" in text for text in embedded)


class Failing(HashingEncoder):
    """Fails while *is_down*."""

    is_down = False

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        if self.is_down:
            raise EncoderError("the encoder is down")
        return super().encode_documents(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_contents_that_the_encoder_failed_on_are_indexed_with_the_next_change_of_any_kind(kind: EntryKind) -> None:
    catalog, encoder = Catalog([content("old", "Climb a volcano")]), Failing()
    with ToolSearch(catalog, encoder=encoder) as engine:
        encoder.is_down = True
        catalog.change([content("new", "Dive under a volcano")], ["old"])
        encoder.is_down = False
        catalog.add(content("other", "Swim", kind=kind))
        assert names(engine.search("volcano")) == ["new"]


def test_a_stored_index_finds_the_contents_that_it_was_made_with(tmp_path: Path) -> None:
    with ToolSearch(small(), index_dir=tmp_path) as engine:
        expected = [engine.search(query, kinds=KINDS, limit=20) for query in QUERIES]
    with ToolSearch.open(tmp_path) as opened:
        found = [opened.search(query, kinds=KINDS, limit=20) for query in QUERIES]
    assert json.dumps([[asdict(each) for each in one] for one in found]) == json.dumps(
        [[asdict(each) for each in one] for one in expected]
    )


WORDS = st.lists(st.sampled_from(["refund", "pay", "card", "customer", "wrap", "text", "number", "copy"]), min_size=1)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_whatever_is_beside_them_tools_have_their_hits(said: list[list[str]], query: list[str]) -> None:
    own = [Tool(ToolDefinition(f"t{n}", " ".join(words))) for n, words in enumerate(said)]
    others = [content(f"s{n}", " ".join(words)) for n, words in enumerate(said)]
    asked = " ".join(query)
    alone = ToolSearch(own, encoder=None).search(asked, limit=20)
    both = ToolSearch([*own, *others], encoder=None)

    assert both.search(asked, limit=20, kinds=["tool"]) == alone
    assert {each.kind for each in both.search(asked, limit=20, kinds=["skill"])} <= {"skill"}
