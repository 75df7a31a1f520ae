"""The catalog: names, atomic changes, snapshots, listeners and sources."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.loading import open_source
from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.errors import BadToolError, DuplicateToolError, SourceError, UnknownToolError
from toolsearch.tools.definition import EntryKind, Refusal, Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.naming import all_namespaced, namespaced, near_names


def made(name: str, description: str = "", source: str = "here") -> Tool:
    return Tool(ToolDefinition(name, description), source=source)


class StubSource:
    description = "a stub"

    def __init__(self, *tools: Tool, refused: tuple[Refusal, ...] = ()) -> None:
        self.report = LoadReport(tools, refused)
        self.closed = 0

    def load(self) -> LoadReport:
        return self.report

    def close(self) -> None:
        self.closed += 1


def test_tools_come_in_insertion_order_and_a_replacement_keeps_its_place() -> None:
    catalog = Catalog([made("b"), made("a")])
    catalog.replace(made("b", "new"))
    catalog.put(made("c"), made("a", "new"))

    assert catalog.names() == ["b", "a", "c"]
    assert [tool.definition.description for tool in catalog] == ["new", "new", ""]
    assert "c" in catalog
    assert len(catalog) == 3


def test_functions_and_definitions_are_tools_too() -> None:
    def ping() -> str:
        return "pong"

    catalog = Catalog([ping, ToolDefinition("shown")])
    assert catalog.names() == ["ping", "shown"]
    assert catalog.get("shown").callback is None


def test_a_duplicate_names_both_owners_and_nothing_is_added() -> None:
    catalog = Catalog([made("a", source="one.json")])

    with pytest.raises(DuplicateToolError, match=r"one\.json.*two\.json"):
        catalog.add(made("b"), made("a", source="two.json"))
    with pytest.raises(DuplicateToolError):
        catalog.add(made("c"), made("c"))
    assert catalog.names() == ["a"]


def test_what_is_not_there_cannot_be_replaced_removed_or_got_but_near_names_are_told() -> None:
    catalog = Catalog([made("git_status"), made("weather")])

    for change in (lambda: catalog.replace(made("git_statu")), lambda: catalog.remove("weather", "git_statu")):
        with pytest.raises(UnknownToolError, match="did you mean git_status"):
            change()
    with pytest.raises(UnknownToolError) as raised:
        catalog.get("git_statu")
    assert raised.value.near == ("git_status",)
    assert len(catalog) == 2


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (ToolDefinition("get weather"), "'get_weather'"),
        (ToolDefinition("x" * 65), "64"),
        (ToolDefinition("a", input_schema={"type": "array"}), "'object'"),
        (ToolDefinition("a", input_schema={"type": "object", "default": {1, 2}}), "plain JSON"),
        (ToolDefinition("a", input_schema={"type": "object", "default": float("nan")}), "plain JSON"),
        (ToolDefinition("a", input_schema={"type": "object", "title": "x" * 500_001}), "characters"),
    ],
)
def test_a_bad_definition_is_refused_with_what_is_wrong(definition: ToolDefinition, reason: str) -> None:
    with pytest.raises(BadToolError, match=reason):
        Catalog([definition])


@pytest.mark.parametrize("depth", [101, 100_000])
def test_a_schema_of_any_depth_is_refused_without_a_recursion_error(depth: int) -> None:
    schema: dict = {}
    for _ in range(depth):
        schema = {"items": schema}

    with pytest.raises(BadToolError, match="nested"):
        Catalog([ToolDefinition("deep", input_schema={"type": "object", **schema})])


def test_a_bad_tool_of_a_source_costs_only_itself() -> None:
    catalog = Catalog([made("taken", source="before")])
    source = StubSource(made("good"), made("taken"), made("good"), made("bad name"), refused=(Refusal("x", "y", "z"),))

    report = catalog.load(source)

    assert catalog.names() == ["taken", "good"]
    assert [tool.name for tool in report.tools] == ["good"]
    assert [refusal.name for refusal in report.refused] == ["x", "bad name", "taken", "good"]
    assert "before" in report.refused[2].reason
    assert catalog.refused == list(report.refused)


def test_closing_closes_each_source_once_and_a_failing_one_hinders_none() -> None:
    class Broken(StubSource):
        def close(self) -> None:
            raise OSError("stuck")

    sources = [StubSource(), Broken(), StubSource()]
    with Catalog() as catalog:
        for source in sources:
            catalog.load(source)
    catalog.close()
    assert [source.closed for source in sources] == [1, 0, 1]


def test_a_snapshot_stays_as_it_was_and_is_made_anew_only_after_a_change() -> None:
    catalog = Catalog([made("a")])
    before = catalog.snapshot()
    assert catalog.snapshot() is before

    catalog.add(made("b"))

    assert list(before.tools) == ["a"]
    assert list(catalog.snapshot().tools) == ["a", "b"]
    assert catalog.snapshot().version > before.version
    with pytest.raises(TypeError):
        before.tools["c"] = made("c")


def test_the_fingerprint_follows_the_content_and_not_the_order() -> None:
    one, other = Catalog([made("a"), made("b")]), Catalog([made("b", source="elsewhere"), made("a")])
    assert one.snapshot().fingerprint == other.snapshot().fingerprint

    other.replace(made("a", "new"))
    assert one.snapshot().fingerprint != other.snapshot().fingerprint
    other.replace(made("a"))
    assert one.snapshot().fingerprint == other.snapshot().fingerprint


def test_listeners_hear_each_change_in_order_until_they_unsubscribe() -> None:
    catalog = Catalog()
    heard: list[CatalogChange] = []
    unsubscribe = catalog.subscribe(heard.append)

    a, b, new_a = made("a"), made("b"), made("a", "new")
    catalog.add(a, b)
    catalog.put(new_a)
    catalog.remove("b")
    catalog.add()
    unsubscribe()
    catalog.remove("a")

    assert heard == [CatalogChange((a, b)), CatalogChange((new_a,), ("a",)), CatalogChange((), ("b",))]


def test_a_failing_listener_hurts_nobody_and_one_may_change_the_catalog() -> None:
    catalog = Catalog()
    heard: list[tuple[str, ...]] = []

    def fail(change: CatalogChange) -> None:
        raise ValueError("broken")

    def add_another(change: CatalogChange) -> None:
        if "b" not in catalog:
            catalog.add(made("b"))

    for listener in (fail, add_another, lambda change: heard.append(tuple(tool.name for tool in change.added))):
        catalog.subscribe(listener)
    catalog.add(made("a"))

    assert heard == [("a",), ("b",)]


@given(st.lists(st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from("abcde"), st.text(max_size=3))))
def test_after_any_changes_a_catalog_is_like_one_built_fresh_and_its_changes_tell_the_same(
    steps: list[tuple[str, str, str]],
) -> None:
    catalog, followed = Catalog(), dict[str, Tool]()

    def follow(change: CatalogChange) -> None:
        for name in change.removed:
            del followed[name]
        followed.update((tool.name, tool) for tool in change.added)

    catalog.subscribe(follow)
    for step, name, description in steps:
        if step == "put":
            catalog.put(made(name, description))
        elif name in catalog:
            catalog.remove(name)
        assert catalog.snapshot().fingerprint == Catalog(catalog.tools()).snapshot().fingerprint

    assert followed == {tool.name: tool for tool in catalog}


def test_threads_may_change_one_catalog_at_once() -> None:
    catalog = Catalog()
    heard: list[str] = []
    catalog.subscribe(lambda change: heard.extend(tool.name for tool in change.added))

    def work(worker: int) -> None:
        for number in range(50):
            catalog.add(made(f"tool_{worker}_{number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert heard == catalog.names()
    assert len(catalog) == catalog.snapshot().version == 400


def test_a_namespaced_name_is_legal_short_and_its_own() -> None:
    assert namespaced("git hub", "list.issues") == "git_hub__list_issues"
    assert namespaced("", "查询").startswith("tool_")


@pytest.mark.parametrize(
    ("server", "name", "expected"),
    [
        ("größe", "Ändern", "grosse__Andern"),
        ("", "Łódź/æther ﬁne", "Lodz_aether_fine"),
        ("s" * 40, "n" * 22, f"{'s' * 40}__{'n' * 22}"),
        ("s" * 40, "n" * 23, f"{'s' * 40}__{'n' * 22}"),
        ("s" * 41, "n" * 22, f"{'s' * 31}_248dac5e__{'n' * 22}"),
        ("github", "actions/get-github-actions-default-workflow-permissions-organization",
         "github__action_get-github-action-defaul-workf-permi-organization"),
        ("api", "getV2AccountsTransactionsRefundsConfirmationsByAccountIdentifier123Now",
         "api__getV2AccountsTransactRefundsConfirmaByAccountIdentifi123Now"),
        ("a", "_".join(["word"] * 20), f"a__{'wor_' * 7}wor" + f"or{'_wor' * 7}"),
    ],
)  # fmt: skip
def test_words_of_a_long_name_are_cut_and_accents_folded(server: str, name: str, expected: str) -> None:
    assert namespaced(server, name) == expected


def test_names_that_are_cut_alike_get_a_tail_and_one_that_is_whole_keeps_its_name() -> None:
    whole = "n" * 59
    longer = [whole + tail for tail in ("n", "nn")]
    names = all_namespaced("srv", [whole, *longer, "other"])

    assert (names[whole], names["other"]) == (f"srv__{whole}", "srv__other")
    assert [name[:56] for name in map(names.get, longer)] == [f"srv__{'n' * 50}_"] * 2
    assert len(set(names.values())) == 4
    assert all_namespaced("srv", reversed([whole, *longer, "other"])) == names


def test_near_names_come_nearest_first_and_by_name_when_equally_near() -> None:
    assert near_names("get_user", ["get_users", "unrelated", "get_userb", "get_usera"]) == [
        "get_usera",
        "get_userb",
        "get_users",
    ]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("median", ["statistics__median", "statistics__median_low"]),  # its server is missing
        ("statistics__mdian", ["statistics__median"]),
        ("statstics__median", ["statistics__median", "statistics__median_low"]),
        ("low_median", ["statistics__median", "statistics__median_low"]),
        ("statistics__foo", []),  # the server alone makes nothing near
        ("radian", ["math__radians"]),
        ("statistics__mod", ["statistics__mode"]),
        ("mediate_quarrels", []),
    ],
)
def test_only_near_names_are_near(name: str, near: list[str]) -> None:
    known = ["statistics__median", "statistics__median_low", "statistics__mode", "math__radians", "math__remainder"]
    assert near_names(name, known) == near


def test_a_command_line_argument_becomes_the_source_it_means(tmp_path: Path) -> None:
    files = {
        "api.yaml": "openapi: 3.1.0\npaths: {}\nservers: []",
        "mcp.json": '{"mcpServers": {}}',
        "code.json": '{"servers": {}}',
        "tools.jsonl": '{"name": "a"}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    specs = [*(str(tmp_path / name) for name in files), "statistics", "module:os.path", f"skills:{tmp_path}"]
    kinds = [type(open_source(spec)).__name__ for spec in specs]
    assert kinds == [
        "OpenApiSource", "McpSource", "McpSource", "JsonListingSource", "ModuleSource", "ModuleSource", "SkillsSource",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("https://example.com/api.json", "download the file"),
        ("no_such_module_here", "neither"),
        ("missing.json", "cannot be read"),
        (".", "is a folder"),
        ("", "no name"),
        ("*.nothing", "matches no file"),
    ],
)
def test_an_argument_that_means_nothing_is_refused_with_what_to_give(spec: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        open_source(spec)


def test_no_tool_can_take_the_name_of_the_search_tool():
    with pytest.raises(BadToolError, match="taken by tool search itself"):
        Catalog([ToolDefinition("toolSearchTool")])


# ---- what an owner has, exchanged as a whole


def heard(catalog: Catalog) -> list[tuple[list[str], list[str]]]:
    """The names added and removed by each change from now on."""
    told: list[tuple[list[str], list[str]]] = []
    catalog.subscribe(lambda change: told.append(([tool.name for tool in change.added], sorted(change.removed))))
    return told


def test_a_sync_replaces_all_that_its_owner_had_in_one_change() -> None:
    catalog = Catalog([made("mine")])
    catalog.sync("git", [made("log"), made("diff"), made("gone")])
    catalog.sync("files", [made("read")])
    told = heard(catalog)
    report = catalog.sync("git", [made("diff", "another"), made("log"), made("blame")])

    assert catalog.names() == ["mine", "log", "diff", "read", "blame"]
    assert told == [(["diff", "blame"], ["diff", "gone"])]
    assert [tool.name for tool in report.tools] == ["diff", "log", "blame"]
    assert report.refused == ()


def test_a_sync_that_defines_all_tools_as_before_is_no_change_though_they_run_otherwise() -> None:
    catalog = Catalog()
    catalog.sync("git", [made("log")])
    before, told = catalog.snapshot(), heard(catalog)
    catalog.sync("git", [Tool(ToolDefinition("log"), origin=ToolOrigin("git", "log", {"name": "log", "_meta": {}}))])

    assert told == []
    assert catalog.snapshot().version == before.version
    assert catalog.get("log").definition is before.tools["log"].definition
    assert catalog.get("log").origin is not None
    assert catalog.snapshot().tools["log"].origin is not None


def test_definitions_are_compared_as_json_where_one_is_not_true() -> None:
    def schema(default: object) -> dict[str, object]:
        return {"type": "object", "properties": {"all": {"default": default}}}

    catalog = Catalog()
    catalog.sync("git", [Tool(ToolDefinition("log", input_schema=schema(1)))])
    told = heard(catalog)
    catalog.sync("git", [Tool(ToolDefinition("log", input_schema=schema(True)))])

    assert told == [(["log"], ["log"])]
    assert catalog.get("log").definition.input_schema["properties"] == {"all": {"default": True}}


def test_a_sync_is_refused_what_another_has_and_what_is_bad_and_takes_the_rest() -> None:
    catalog = Catalog([made("mine", source="me")])
    catalog.sync("files", [made("read", source="files")])
    tools = [made("mine", "theirs"), made("read", source="git"), made("bad name"), made("log"), made("log")]
    report = catalog.sync("git", tools)

    assert catalog.names() == ["mine", "read", "log"]
    assert catalog.get("mine").definition.description == ""
    assert [refusal.name for refusal in report.refused] == ["bad name", "mine", "read", "log"]
    assert "from files, one from git" in report.refused[2].reason
    assert catalog.refused == list(report.refused)


def test_what_is_refused_of_an_owner_is_forgotten_with_its_next_sync() -> None:
    catalog = Catalog()
    catalog.sync("git", [made("bad name")])
    catalog.sync("files", [made("worse name")])
    catalog.sync("git", [made("log")])

    assert [refusal.name for refusal in catalog.refused] == ["worse name"]


@pytest.mark.parametrize("by_hand", [Catalog.put, Catalog.replace])
def test_what_is_put_by_name_is_its_owners_no_more(by_hand: Callable[..., None]) -> None:
    catalog = Catalog()
    catalog.sync("git", [made("log")])
    by_hand(catalog, made("log", "by hand"))
    catalog.sync("git", [made("log", "by git")])
    catalog.sync("git", [])

    assert [tool.definition.description for tool in catalog] == ["by hand"]


def test_what_was_removed_comes_back_with_the_next_sync_and_another_may_take_its_name_meanwhile() -> None:
    catalog = Catalog()
    catalog.sync("git", [made("log")])
    catalog.remove("log")
    catalog.sync("files", [made("log")])
    assert [refusal.name for refusal in catalog.sync("git", [made("log")]).refused] == ["log"]
    catalog.sync("files", [])

    assert [tool.name for tool in catalog.sync("git", [made("log")]).tools] == ["log"]


def test_what_one_source_gave_another_load_of_the_same_source_does_not_replace() -> None:
    catalog = Catalog()
    source = StubSource(made("a"))
    catalog.load(source)
    assert [refusal.name for refusal in catalog.load(source).refused] == ["a"]
    assert [refusal.name for refusal in catalog.refused] == ["a"]


def test_a_catalog_is_true_while_it_is_empty() -> None:
    assert Catalog()
    assert len(Catalog()) == 0


def test_a_catalog_of_mcp_servers_takes_what_their_source_takes() -> None:
    """All but the clock, which is for tests of the source, and what a bar of progress is told."""
    source = set(inspect.signature(McpSource).parameters) - {"clock", "on_waiting"}
    assert set(inspect.signature(Catalog.from_mcp).parameters) == source


def test_what_a_server_is_for_is_one_printable_line_of_its_own_words() -> None:
    long = "Finds\x1b[2K\n- books: " + "and more " * 20 + ". Ask for one."
    catalog = Catalog()
    first = StubSource(made("a"))
    first.report = replace(first.report, purposes={"shop": "Sells e.g. books. It is open.\n\nAlways.", "dumb": " "})
    second = StubSource(made("b"))
    second.report = replace(second.report, purposes={"shop": "Another shop.", "library": long})
    catalog.load(first)
    catalog.load(second)

    assert catalog.server_purpose("shop") == "Sells e.g. books."
    library = "Finds [2K - books: " + "and more " * 8 + "and…"
    assert catalog.server_purpose("library") == library
    assert len(library) <= 100
    assert [catalog.server_purpose(server) for server in ("dumb", "nowhere")] == ["", ""]


def test_what_a_server_is_for_follows_its_owner() -> None:
    catalog = Catalog()
    catalog.sync("owner", [made("a")], purposes={"shop": "Sells books."})
    before = catalog.snapshot()

    catalog.sync("owner", [made("a")], purposes={"shop": "Sells music."})
    assert catalog.server_purpose("shop") == "Sells music."
    assert before.purposes == {"shop": "Sells books."}
    catalog.sync("owner", [])
    assert catalog.server_purpose("shop") == ""


@pytest.mark.parametrize(("before", "after"), [("tool", "skill"), ("skill", "tool"), ("prompt", "resource")])
def test_one_change_can_give_a_name_to_an_entry_of_another_kind(before: EntryKind, after: EntryKind) -> None:
    catalog = Catalog([ToolDefinition("refund", kind=before)])
    with pytest.raises(DuplicateToolError):
        catalog.put(ToolDefinition("refund", kind=after))
    assert catalog.find_entry("refund") == Tool(ToolDefinition("refund", kind=before))
    catalog.change([ToolDefinition("refund", kind=after)])
    assert catalog.find_entry("refund") == Tool(ToolDefinition("refund", kind=after))
    assert len(catalog) + len(catalog.contents) == 1
