"""Skills, prompts and resources in a catalog: beside its tools, under names that no tool has, and never among them."""

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.skills import content, skill_entry, write_skill
from toolsearch import Catalog, Tool, ToolDefinition, ToolSearch
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.index_directory import IndexDirectory
from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.errors import BadToolError, DuplicateToolError, UnknownToolError
from toolsearch.tools.definition import EntryKind
from toolsearch.upstreams.contents import read_contents
from toolsearch.upstreams.interface import Listing


def made(name: str, description: str = "", source: str = "here") -> Tool:
    return Tool(ToolDefinition(name, description), source=source)


def heard(catalog: Catalog) -> list[CatalogChange]:
    told: list[CatalogChange] = []
    catalog.subscribe(told.append)
    return told


def state(catalog: Catalog) -> tuple[list[str], list[str]]:
    """The names of the tools, and of all else."""
    return catalog.names(), list(catalog.contents)


# ---- apart from the tools


def test_contents_are_sorted_by_name_and_no_listing_of_tools_has_them() -> None:
    catalog = Catalog([content("z"), made("tool"), content("a", kind="prompt"), content("m", kind="resource")])
    assert state(catalog) == (["tool"], ["a", "m", "z"])
    assert [tool.name for tool in catalog] == [tool.name for tool in catalog.tools()] == ["tool"]
    assert len(catalog) == 1
    assert "a" not in catalog
    assert catalog.find("a") is None
    with pytest.raises(UnknownToolError):
        catalog.get("a")


def test_an_entry_is_found_by_its_name_whatever_its_kind() -> None:
    catalog = Catalog([made("tool"), content("skill")])
    found = {name: catalog.find_entry(name) for name in ("tool", "skill", "nothing")}
    assert {name: each and each.definition.kind for name, each in found.items()} == {
        "tool": "tool",
        "skill": "skill",
        "nothing": None,
    }


def test_contents_cannot_be_changed_but_by_the_catalog() -> None:
    catalog = Catalog([content("skill")])
    with pytest.raises(TypeError):
        catalog.contents["other"] = content("other")  # type: ignore[index]


@pytest.mark.parametrize("name", ["toolSearchTool", "callTool", "readSkill", "a b", ""])
def test_contents_are_held_to_the_rules_of_names(name: str) -> None:
    with pytest.raises(BadToolError):
        Catalog([content(name)])


# ---- one name, one entry


@pytest.mark.parametrize("kinds", [("tool", "skill"), ("skill", "tool"), ("skill", "prompt"), ("resource", "skill")])
@pytest.mark.parametrize("method", [Catalog.add, Catalog.put])
def test_no_two_entries_of_different_kinds_have_one_name(
    kinds: tuple[EntryKind, EntryKind], method: Callable[..., None]
) -> None:
    first, second = (content("one", kind=kind, source=f"a {kind}") for kind in kinds)
    catalog = Catalog([first])
    before = catalog.snapshot()
    with pytest.raises(DuplicateToolError, match=f"a {kinds[0]}.*a {kinds[1]}"):
        method(catalog, content("new"), second)
    assert catalog.snapshot() is before


def test_contents_of_one_name_cannot_be_added_twice_but_put() -> None:
    catalog = Catalog([content("one", "first")])
    with pytest.raises(DuplicateToolError):
        catalog.add(content("one", "second"))
    catalog.put(content("one", "second"))
    assert catalog.contents["one"].definition.description == "second"
    catalog.replace(content("one", "third"))
    assert catalog.contents["one"].definition.description == "third"


def test_what_another_source_has_is_not_shadowed_by_an_entry_of_any_kind() -> None:
    catalog = Catalog()
    catalog.sync("first", [made("tool", source="first"), content("skill", "first", source="first")])
    report = catalog.sync(
        "second", [content("tool", source="second"), made("skill", source="second"), content("own"), content("own")]
    )
    assert [tool.name for tool in report.tools] == ["own"]
    assert [each.name for each in report.refused] == ["tool", "skill", "own"]
    assert catalog.contents["skill"].definition.description == "first"
    assert state(catalog) == (["tool"], ["own", "skill"])


# ---- changes


def test_a_change_of_contents_is_told_and_is_no_change_of_tools() -> None:
    catalog = Catalog([made("tool")])
    told = heard(catalog)
    versions = [catalog.snapshot().version]
    changes: list[Callable[[], None]] = [
        lambda: catalog.add(content("a")),
        lambda: catalog.put(content("a", "new")),
        lambda: catalog.change([content("b")], ["a"]),
        lambda: catalog.remove("b"),
    ]
    for make in changes:
        make()
        versions.append(catalog.snapshot().version)

    assert [(change.added, change.removed, change.contents) for change in told] == [((), (), True)] * 4
    assert versions == sorted(set(versions))
    assert state(catalog) == (["tool"], [])


def test_one_change_may_be_of_both() -> None:
    catalog = Catalog([made("old"), content("gone")])
    told = heard(catalog)
    catalog.change([made("new"), content("skill")], ["old", "gone", "never"])
    [change] = told
    assert ([tool.name for tool in change.added], change.removed, change.contents) == (["new"], ("old",), True)
    assert state(catalog) == (["new"], ["skill"])
    catalog.remove("new", "skill")
    assert state(catalog) == ([], [])


def test_contents_of_the_same_definition_are_no_change_but_the_new_ones_are_there() -> None:
    catalog = Catalog()
    catalog.sync("folder", [content("skill", source="before")])
    told, before = heard(catalog), catalog.snapshot()
    catalog.sync("folder", [content("skill", source="after")])

    assert told == []
    assert catalog.contents["skill"].source == catalog.snapshot().contents["skill"].source == "after"
    assert before.contents["skill"].source == "before"
    assert catalog.contents["skill"].definition is before.contents["skill"].definition


def test_a_skill_of_a_server_has_changed_if_only_a_file_of_it_has() -> None:
    catalog = Catalog()
    told = heard(catalog)
    for rules in (b"30 days", b"31 days", b"31 days"):
        skills = (skill_entry("refunds", {"rules.md": rules}),)
        catalog.sync("shop", read_contents(Listing("shop", (), skills=skills))[0])
    assert [change.contents for change in told] == [True, True]


def test_a_skill_of_a_folder_has_changed_if_only_a_file_of_it_has(tmp_path: Path) -> None:
    catalog = Catalog()
    told = heard(catalog)
    skill = write_skill(tmp_path, "refunds", files={"rules.md": "30 days"})
    for rules in ("30 days", "31 days", "31 days"):
        (skill / "rules.md").write_text(rules)
        catalog.sync("folder", SkillsSource(tmp_path).load().tools)
    assert [change.contents for change in told] == [True, True]


def test_nothing_is_removed_if_one_of_the_names_is_unknown() -> None:
    catalog = Catalog([made("tool"), content("skill")])
    with pytest.raises(UnknownToolError):
        catalog.remove("skill", "tool", "nothing")
    assert state(catalog) == (["tool"], ["skill"])


def test_a_snapshot_stays_as_it_was() -> None:
    catalog = Catalog([content("a")])
    before = catalog.snapshot()
    catalog.remove("a")
    catalog.add(content("b"))
    assert list(before.contents) == ["a"]
    assert list(catalog.snapshot().contents) == ["b"]


def test_the_fingerprint_of_a_catalog_is_also_that_of_its_contents() -> None:
    prints = {
        Catalog(entries).snapshot().fingerprint
        for entries in (
            [made("a")], [made("a"), content("b")], [made("a"), content("b", "other")],
            [made("a"), content("b", kind="prompt")], [content("a"), content("b")],
        )
    }  # fmt: skip
    assert len(prints) == 5
    assert Catalog([content("b"), made("a")]).snapshot().fingerprint in prints


def test_the_kind_of_an_entry_is_part_of_its_fingerprint_and_tools_have_the_old_one() -> None:
    kinds: list[EntryKind] = ["tool", "skill", "prompt", "resource"]
    assert len({ToolDefinition("a", kind=kind).fingerprint() for kind in kinds}) == 4
    assert ToolDefinition("a", kind="tool").fingerprint() == ToolDefinition("a").fingerprint()
    skill = ToolDefinition("a", kind="skill")
    assert replace(skill, text="more").fingerprint() != skill.fingerprint() == replace(skill, text="").fingerprint()


# ---- owners


def test_a_sync_replaces_all_contents_of_its_owner_and_no_other() -> None:
    catalog = Catalog([content("mine")])
    catalog.sync("a", [content("a1"), content("a2"), made("tool")])
    catalog.sync("b", [content("b1")])
    catalog.sync("a", [content("a2", "new"), content("a3")])
    assert state(catalog) == ([], ["a2", "a3", "b1", "mine"])
    catalog.sync("a", [])
    assert state(catalog) == ([], ["b1", "mine"])


def test_an_owner_may_make_a_skill_of_its_tool_and_the_other_way_round() -> None:
    catalog = Catalog()
    catalog.sync("a", [made("x"), content("y")])
    told = heard(catalog)
    catalog.sync("a", [content("x"), made("y")])
    assert state(catalog) == (["y"], ["x"])
    [change] = told
    assert ([tool.name for tool in change.added], change.removed, change.contents) == (["y"], ("x",), True)


def test_contents_that_are_put_by_hand_are_their_owners_no_more() -> None:
    catalog = Catalog()
    catalog.sync("a", [content("skill")])
    catalog.put(content("skill", "by hand"))
    assert [each.name for each in catalog.sync("a", [content("skill", "by a")]).refused] == ["skill"]
    catalog.sync("a", [])
    assert catalog.contents["skill"].definition.description == "by hand"


def test_contents_that_were_removed_come_back_with_the_next_sync() -> None:
    catalog = Catalog()
    catalog.sync("a", [content("skill")])
    catalog.remove("skill")
    catalog.sync("b", [content("skill", "of b")])
    assert [each.name for each in catalog.sync("a", [content("skill")]).refused] == ["skill"]
    catalog.sync("b", [])
    catalog.sync("a", [content("skill")])
    assert state(catalog) == ([], ["skill"])


def test_a_source_gives_entries_of_every_kind() -> None:
    class Both:
        description = "a source of both"

        def load(self) -> LoadReport:
            return LoadReport((made("tool"), content("skill"), content("bad name")))

        def close(self) -> None:
            """Nothing is open."""

    catalog = Catalog()
    report = catalog.load(Both())
    assert [tool.name for tool in report.tools] == ["tool", "skill"]
    assert [each.name for each in report.refused] == ["bad name"]


NAMES = st.sampled_from("abcdef")
KIND: st.SearchStrategy[EntryKind] = st.sampled_from(["tool", "tool", "skill", "prompt", "resource"])
ENTRIES = st.lists(st.builds(content, NAMES, NAMES, kind=KIND), max_size=5)
Given: TypeAlias = list[Any] | tuple[list[Any], list[str]]
STEPS: st.SearchStrategy[tuple[str, Given]] = st.one_of(
    st.tuples(st.sampled_from(["add", "put", "replace"]), ENTRIES),
    st.tuples(st.sampled_from(["sync a", "sync b"]), ENTRIES),
    st.tuples(st.just("remove"), st.lists(NAMES, max_size=3)),
    st.tuples(st.just("change"), st.tuples(ENTRIES, st.lists(NAMES, max_size=3))),
)


@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_every_name_has_one_entry_and_the_changes_tell_all(steps: list[tuple[str, Given]]) -> None:
    """A listener that applies what it is told has the tools of the catalog, and knows when to look at all else."""
    catalog, tools, seen = Catalog(), dict[str, str](), dict[str, str]()

    def follow(change: CatalogChange) -> None:
        for name in change.removed:
            tools.pop(name)
        tools.update({tool.name: tool.definition.fingerprint() for tool in change.added})
        if change.contents:
            seen.clear()
            seen.update({name: each.definition.fingerprint() for name, each in catalog.snapshot().contents.items()})

    catalog.subscribe(follow)
    for what, given_to in steps:
        before = catalog.snapshot()
        try:
            if isinstance(given_to, tuple):
                catalog.change(*given_to)
            elif what.startswith("sync"):
                catalog.sync(what, given_to)
            else:
                getattr(catalog, what)(*given_to)
        except (DuplicateToolError, UnknownToolError):
            assert catalog.snapshot() is before
        assert not set(catalog.names()) & set(catalog.contents)
        assert list(catalog.contents) == sorted(catalog.contents)
        assert all(tool.definition.kind == "tool" for tool in catalog)
        assert all(each.definition.kind != "tool" for each in catalog.contents.values())
        assert tools == {tool.name: tool.definition.fingerprint() for tool in catalog}
        assert seen == {name: each.definition.fingerprint() for name, each in catalog.contents.items()}


def test_a_reader_without_the_lock_sees_each_change_as_a_whole() -> None:
    """Both skills always have one description, and the mapping that a reader holds does not change under it."""
    catalog = Catalog([content("a", "0"), content("b", "0")])
    stop, torn = threading.Event(), list[object]()

    def look() -> None:
        while not stop.is_set():
            now = catalog.contents
            said = {each.definition.description for each in now.values()}
            if len(said) != 1 or len(now) != 2:
                torn.append(said)

    reader = threading.Thread(target=look)
    reader.start()
    for n in range(300):
        catalog.put(content("a", str(n)), content("b", str(n)))
    stop.set()
    reader.join()
    assert torn == []


# ---- copies, and what is stored


def test_a_copy_has_the_contents_and_its_own_ones_from_then_on() -> None:
    catalog = Catalog([made("tool"), content("skill")])
    copy: Catalog = pickle.loads(pickle.dumps(catalog))  # noqa: S301  made here
    copy.add(content("more"))
    assert state(copy) == (["tool"], ["more", "skill"])
    assert state(catalog) == (["tool"], ["skill"])


def stored(folder: Path, *entries: Tool) -> None:
    ToolSearch(list(entries), index_dir=folder, encoder=None).close()


def test_a_stored_catalog_has_its_contents_with_kinds_and_sources(tmp_path: Path) -> None:
    entries = [made("tool"), content("b", "B", kind="prompt", server="s", source="mcp.json#s"), content("a", "A")]
    entries[2] = replace(entries[2], definition=replace(entries[2].definition, text="what else it says"))
    stored(tmp_path, *entries)
    with IndexDirectory(tmp_path).open_catalog() as catalog:
        assert state(catalog) == (["tool"], ["a", "b"])
        assert [each.definition for each in catalog.contents.values()] == [entries[2].definition, entries[1].definition]
        assert catalog.contents["b"].source == "mcp.json#s"
        assert catalog.snapshot().fingerprint == Catalog(entries).snapshot().fingerprint


def generation(folder: Path) -> str:
    return (folder / "CURRENT").read_text()


@pytest.mark.parametrize(
    "then",
    [
        [made("tool"), content("skill", "new")],
        [made("tool"), content("skill", kind="prompt")],
        [made("tool")],
        [made("tool"), content("skill"), content("more")],
    ],
)
def test_a_change_of_contents_alone_is_stored(tmp_path: Path, then: list[Tool]) -> None:
    stored(tmp_path, made("tool"), content("skill"))
    before = generation(tmp_path)
    stored(tmp_path, made("tool"), content("skill"))
    assert generation(tmp_path) == before
    stored(tmp_path, *then)
    with IndexDirectory(tmp_path).open_catalog() as catalog:
        assert [each.definition for each in catalog.contents.values()] == [
            each.definition for each in Catalog(then).contents.values()
        ]


def test_contents_that_are_read_from_elsewhere_are_stored_anew(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        own = tmp_path / folder / "skills" / "good"
        own.mkdir(parents=True)
        (own / "SKILL.md").write_text("---\nname: good\ndescription: Is good\n---\n")
        catalog = Catalog([made("tool")])
        catalog.load(f"skills:{own.parent}")
        ToolSearch(catalog, index_dir=tmp_path / "index", encoder=None).close()
    with IndexDirectory(tmp_path / "index").open_catalog() as read:
        assert read.contents["skills__good"].spec == f"skills:{tmp_path}/two/skills"


def test_an_index_of_contents_alone_is_kept_as_it_is(tmp_path: Path) -> None:
    stored(tmp_path, content("skill"))
    before = generation(tmp_path)
    stored(tmp_path, content("skill"))
    assert generation(tmp_path) == before
