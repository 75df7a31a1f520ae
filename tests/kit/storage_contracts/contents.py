"""What a place for the tools of catalogs owes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.errors import ConflictError
from toolsearch.storage.contents import CatalogContents, ContentsSince, StoredCatalog, StoredTool
from toolsearch.tools.definition import EntryKind


def tool(name: str, fingerprint: str = "f", source: str = "", kind: EntryKind = "tool") -> StoredTool:
    return StoredTool(name, fingerprint, {"definition": {"name": name, "description": "ü", "kind": kind}}, source)


class CatalogContentsContract:
    def make(self, folder: Path) -> CatalogContents:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> CatalogContents:
        return self.make(tmp_path)

    def test_what_was_written_last_under_a_name_is_there(self, kept: CatalogContents) -> None:
        kept.change("a", "main", put=[tool("x", "f1"), tool("y"), tool("z", source="docs")])
        kept.change("a", "main", put=[tool("x", "f2")], remove=["y", "never was"])

        assert kept.fingerprints("a", "main") == {"x": "f2", "z": "f"}
        assert kept.get("a", "main", ["z", "x", "y"]) == [tool("x", "f2"), tool("z", source="docs")]
        assert kept.get("a", "main", []) == []

    def test_what_is_removed_and_put_in_one_change_is_there(self, kept: CatalogContents) -> None:
        kept.change("a", "main", put=[tool("x", "f1")])
        kept.change("a", "main", put=[tool("x", "f2")], remove=["x"])

        assert kept.fingerprints("a", "main") == {"x": "f2"}

    def test_each_catalog_of_each_tenant_has_its_own_tools(self, kept: CatalogContents) -> None:
        for number, (tenant, catalog) in enumerate([("a", "main"), ("a", "other"), ("b", "main")]):
            kept.change(tenant, catalog, put=[tool("x", f"f{number}")])
        kept.change("a", "other", put=[tool("y")])

        assert kept.fingerprints("a", "main") == {"x": "f0"}
        assert kept.fingerprints("b", "main") == {"x": "f2"}
        assert [kept.count("a", "main"), kept.count("a"), kept.count("b"), kept.count("c")] == [1, 3, 1, 0]

    def test_the_tools_of_one_source_can_be_told_apart(self, kept: CatalogContents) -> None:
        kept.change("a", "main", put=[tool("x"), tool("y", source="docs"), tool("z", source="docs")])

        assert [each.name for each in kept.page("a", "main", limit=9, source="docs")] == ["y", "z"]
        assert [each.name for each in kept.page("a", "main", limit=9, source="")] == ["x"]

    def test_what_is_no_tool_is_given_whole_and_is_not_counted(self, kept: CatalogContents) -> None:
        kept.change("a", "main", put=[tool("x"), tool("y", kind="prompt"), tool("z")])
        revision = kept.change("a", "main", put=[tool("x", kind="skill"), tool("y", kind="prompt")])

        skill, prompt = tool("x", kind="skill"), tool("y", kind="prompt")
        assert kept.whole("a", "main") == StoredCatalog(revision, {"z": "f"}, [skill, prompt])
        assert kept.count("a", "main") == 1
        assert kept.get("a", "main", ["x"]) == [skill]
        assert kept.since("a", "main", revision - 1).put == [skill, prompt]
        assert kept.whole("a", "none") == StoredCatalog(0, {}, [])

    def test_pages_go_by_name(self, kept: CatalogContents) -> None:
        kept.change("a", "main", put=[tool("y"), tool("x"), tool("z")])

        assert kept.page("a", "main", limit=2) == [tool("x"), tool("y")]
        assert kept.page("a", "main", after="y", limit=2) == [tool("z")]
        assert kept.page("a", "main", after="z", limit=2) == []

    def test_thousands_of_tools_can_be_written_and_asked_for_at_once(self, kept: CatalogContents) -> None:
        """More than a statement of SQLite takes parameters."""
        names = [f"t{number:05}" for number in range(40_000)]
        kept.change("a", "main", put=[StoredTool(name, "f", {}) for name in names])

        assert [each.name for each in kept.get("a", "main", names)] == names
        assert list(kept.fingerprints("a", "main")) == names

    def test_every_change_makes_the_revision_grow_and_nothing_else_does(self, kept: CatalogContents) -> None:
        revisions = [kept.revision("a", "main")]
        revisions += [kept.change("a", "main", put=[tool("x")]) for _ in range(2)]
        revisions.append(kept.change("a", "main"))
        kept.drop("a", "main")
        revisions.append(kept.revision("a", "main"))
        revisions.append(kept.change("a", "main", put=[tool("x")]))
        kept.change("a", "other", put=[tool("x")])

        assert revisions[0] == 0
        assert revisions == sorted(set(revisions))
        assert kept.revision("a", "main") == revisions[-1]

    def test_what_was_written_since_a_revision_can_be_read_alone(self, kept: CatalogContents) -> None:
        first = kept.change("a", "main", put=[tool("x"), tool("y"), tool("z")])
        kept.change("a", "main", put=[tool("y", "f2")])
        last = kept.change("a", "main", put=[tool("w")])
        kept.change("a", "other", put=[tool("v")])
        kept.change("b", "main", put=[tool("v")])

        assert kept.since("a", "main", first) == ContentsSince(last, [tool("w"), tool("y", "f2")])
        assert kept.since("a", "main", last) == ContentsSince(last)
        assert kept.since("a", "nothing", 0) == ContentsSince(0)

    def test_a_tool_counts_as_written_also_if_its_definition_stayed_the_same(self, kept: CatalogContents) -> None:
        """What runs it may have changed."""
        first = kept.change("a", "main", put=[tool("x"), tool("y")])
        kept.change("a", "main", put=[tool("x")])

        assert kept.since("a", "main", first).put == [tool("x")]

    def test_if_a_tool_was_removed_since_all_names_are_told(self, kept: CatalogContents) -> None:
        first = kept.change("a", "main", put=[tool("x"), tool("y")])
        removed = kept.change("a", "main", put=[tool("w")], remove=["x"])
        last = kept.change("a", "main", put=[tool("z")])

        since = kept.since("a", "main", first)
        assert (since.put, since.names) == ([tool("w"), tool("z")], {"w", "y", "z"})
        assert kept.since("a", "main", removed) == ContentsSince(last, [tool("z")])

    def test_all_names_are_told_if_the_catalog_was_dropped_since(self, kept: CatalogContents) -> None:
        first = kept.change("a", "main", put=[tool("x"), tool("y")])
        kept.drop("a", "main")
        dropped = kept.since("a", "main", first)
        kept.change("a", "main", put=[tool("y")])
        again = kept.since("a", "main", first)

        assert (dropped.put, dropped.names) == ([], set())
        assert (again.put, again.names) == ([tool("y")], {"y"})

    def test_nobody_can_tell_from_revisions_what_another_tenant_does(self, kept: CatalogContents) -> None:
        before = kept.change("a", "main")
        kept.change("b", "main")

        assert kept.change("a", "main") == before + 1

    def test_a_change_over_a_revision_that_is_past_changes_nothing(self, kept: CatalogContents) -> None:
        read = kept.change("a", "main", put=[tool("x")], over=0)
        now = kept.change("a", "main", put=[tool("y")], over=read)

        with pytest.raises(ConflictError, match="catalog 'main' has changed meanwhile"):
            kept.change("a", "main", put=[tool("z")], remove=["x"], over=read)
        assert list(kept.fingerprints("a", "main")) == ["x", "y"]
        assert kept.revision("a", "main") == now

    def test_a_catalog_that_was_dropped_is_empty_and_no_other_is(self, kept: CatalogContents) -> None:
        for tenant, catalog in (("a", "main"), ("a", "other"), ("b", "main")):
            kept.change(tenant, catalog, put=[tool("x")])
        kept.drop("a", "main")

        assert [kept.count(*each) for each in (("a", "main"), ("a", "other"), ("b", "main"))] == [0, 1, 1]

    def test_of_many_that_change_one_catalog_at_once_none_is_lost(self, kept: CatalogContents) -> None:
        with ThreadPoolExecutor(8) as threads:
            revisions = list(threads.map(lambda n: kept.change("a", "main", put=[tool(f"t{n:02}")]), range(20)))

        assert list(kept.fingerprints("a", "main")) == [f"t{number:02}" for number in range(20)]
        assert len(set(revisions)) == 20
