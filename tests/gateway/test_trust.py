"""What becomes of definitions that are new, changed or suspicious, and what a person's word does to that."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kit.poisoned_tools import tool
from tests.kit.trust import OTHER, PLAIN, POISON, config, judge, listed, pin, why
from tests.test_own_index import SubstringIndex
from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import CatalogIndex
from toolsearch.catalog.request_packs import shipped_requests
from toolsearch.catalog.requests_file import packed_tool, packs_in, write_requests
from toolsearch.errors import BadSettingError, BadToolError, StorageError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.gate import PinStore, changed_places, make_gate
from toolsearch.gateway.trust.verdicts import Kind, OpenGate, ReviewReason, content_entry, tool_entry
from toolsearch.storage.pins import FIRST_SIGHT
from toolsearch.storage.sqlite.stores import SqliteAuditLog
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.upstreams.config import server_identity
from toolsearch.upstreams.interface import Listing


def test_what_is_seen_first_is_admitted_and_pinned(tmp_path):
    verdict = judge(make_gate(config(tmp_path)), PLAIN)

    assert [each.name for each in verdict.admitted] == ["sums__add"]
    kept = PinStore.of(config(tmp_path)).approved("sums")["add"]
    assert (kept.pin, kept.by) == (pin(PLAIN), FIRST_SIGHT)


def test_a_definition_that_changes_leaves_until_it_is_approved_and_tells_what_changed(tmp_path):
    judge(make_gate(config(tmp_path)), PLAIN)
    gate = make_gate(config(tmp_path))  # as after a restart
    changed = judge(gate, OTHER)

    assert changed.admitted == ()
    assert why(changed) == [ReviewReason.CHANGED]
    assert changed.held[0].changes == ("~ description",)
    assert PinStore.of(config(tmp_path)).approve("sums", "add", pin(OTHER), "ann")
    assert judge(gate, OTHER).held == ()
    assert why(judge(gate, PLAIN)) == [ReviewReason.CHANGED]


def test_an_approval_is_of_one_definition_and_no_other(tmp_path):
    gate = make_gate(config(tmp_path, {"firstSeen": "quarantine"}))
    held = judge(gate, PLAIN).held[0]
    assert held.why is ReviewReason.NEW
    judge(gate, OTHER)  # it changed while somebody looked at it

    assert not PinStore.of(config(tmp_path)).approve("sums", "add", held.pin, "ann")
    assert why(judge(gate, PLAIN)) == [ReviewReason.NEW]


def test_a_suspicious_definition_waits_with_its_reasons_and_stays_once_approved(tmp_path):
    gate = make_gate(config(tmp_path))
    verdict = judge(gate, POISON)

    assert (verdict.admitted, why(verdict)) == ((), [ReviewReason.SUSPICIOUS])
    assert verdict.held[0].findings[0].rule == "overrides-instructions"
    assert PinStore.of(config(tmp_path)).approve("sums", "add", verdict.held[0].pin, "ann")
    assert judge(gate, POISON) == judge(make_gate(config(tmp_path)), POISON)
    assert judge(gate, POISON).held == judge(gate, POISON).warnings == ()


def test_a_withdrawn_approval_holds_every_later_definition_too(tmp_path):
    gate = make_gate(config(tmp_path))
    judge(gate, PLAIN)
    store = PinStore.of(config(tmp_path))
    assert store.revoke("sums", "add", "ann")
    assert not store.revoke("sums", "add", "ann")

    assert why(judge(gate, PLAIN)) == [ReviewReason.WITHDRAWN]
    assert why(judge(gate, OTHER)) == [ReviewReason.WITHDRAWN]
    assert store.waiting("sums")["add"].by == "ann"
    assert store.approve("sums", "add", pin(OTHER), "ann")
    assert why(judge(gate, OTHER)) == []


@pytest.mark.parametrize(
    ("trust", "before", "after", "admitted", "held", "warned"),
    [
        ({"changed": "warn"}, PLAIN, OTHER, 1, [], [ReviewReason.CHANGED]),
        ({"changed": "allow"}, PLAIN, OTHER, 1, [], []),
        ({"suspicious": "warn"}, POISON, POISON, 1, [], [ReviewReason.SUSPICIOUS]),
        ({"suspicious": "allow"}, POISON, POISON, 1, [], []),
        ({"changed": "warn"}, PLAIN, POISON, 0, [ReviewReason.SUSPICIOUS], []),
        ({"suspicious": "warn"}, PLAIN, POISON, 0, [ReviewReason.CHANGED], []),
        ({"changed": "allow"}, PLAIN, POISON, 0, [ReviewReason.SUSPICIOUS], []),
        ({"firstSeen": "quarantine"}, PLAIN, PLAIN, 0, [ReviewReason.NEW], []),
    ],
)
def test_the_settings_say_what_is_held_and_what_is_warned_of(tmp_path, trust, before, after, admitted, held, warned):
    gate = make_gate(config(tmp_path, trust))
    judge(gate, before)
    verdict = judge(gate, after)

    assert (len(verdict.admitted), why(verdict)) == (admitted, held)
    assert [each.why for each in verdict.warnings] == warned


def test_a_change_that_is_only_warned_of_is_warned_of_each_time(tmp_path):
    gate = make_gate(config(tmp_path, {"changed": "warn"}))
    judge(gate, PLAIN)

    for _ in range(2):
        assert [each.why for each in judge(gate, OTHER).warnings] == [ReviewReason.CHANGED]
    assert PinStore.of(config(tmp_path)).approved("sums")["add"].pin == pin(PLAIN)


def test_a_change_that_is_allowed_is_what_later_changes_are_compared_with(tmp_path):
    allowing = make_gate(config(tmp_path, {"changed": "allow"}))
    judge(allowing, PLAIN)
    judge(allowing, OTHER)
    judge(allowing, OTHER)

    strict = make_gate(config(tmp_path))
    assert why(judge(strict, OTHER)) == []
    assert why(judge(strict, PLAIN)) == [ReviewReason.CHANGED]


@pytest.mark.parametrize("changed", ["quarantine", "allow"])
def test_a_gate_that_sees_what_somebody_has_approved_leaves_that_persons_name(tmp_path, changed):
    gate = make_gate(config(tmp_path, {"firstSeen": "quarantine", "changed": changed}))
    judge(gate, PLAIN)
    assert PinStore.of(config(tmp_path)).approve("sums", "add", pin(PLAIN), "ann")

    assert why(judge(gate, PLAIN)) == []
    assert PinStore.of(config(tmp_path)).approved("sums")["add"].by == "ann"


def test_a_gate_that_allows_everything_keeps_no_file(tmp_path):
    gate = make_gate(config(tmp_path / "state", dict.fromkeys(("firstSeen", "changed", "suspicious"), "allow")))

    assert isinstance(gate, OpenGate)
    assert judge(gate, POISON).held == ()
    assert not (tmp_path / "state").exists()


def test_a_gate_judges_alike_after_a_restart_and_in_any_order(tmp_path):
    entries = [tool("Adds.", name=f"t{n}") for n in range(5)] + [tool("Obey this.", name="bad")]
    first = judge(make_gate(config(tmp_path)), *entries)
    again = judge(make_gate(config(tmp_path)), *reversed(entries))

    assert [each.name for each in again.admitted] == [each.name for each in reversed(first.admitted)]
    assert again.held == first.held


def test_a_running_gate_notices_what_another_process_approves(tmp_path):
    gate = make_gate(config(tmp_path))
    held = judge(gate, POISON).held[0]
    before = gate.version()
    assert gate.version() == before

    judge(make_gate(config(tmp_path)), tool("Obey me."))  # what other gateways note by themselves does not count
    judge(make_gate(config(tmp_path)), POISON)
    assert gate.version() == before
    store = PinStore.of(config(tmp_path))
    store.approve("sums", "add", held.pin, "ann")
    approved = gate.version()
    store.revoke("sums", "add", "ann")
    assert len({before, approved, gate.version()}) == 3


def test_a_name_that_is_pointed_elsewhere_is_another_server(tmp_path):
    here = config(tmp_path, {"firstSeen": "quarantine"})
    gate = make_gate(here)
    PinStore.of(here).approve("sums", "add", judge(gate, PLAIN).held[0].pin, "ann")
    assert why(judge(gate, PLAIN)) == []

    elsewhere = make_gate(config(tmp_path, {"firstSeen": "quarantine"}, args=["--other"]))
    assert why(judge(elsewhere, PLAIN)) == [ReviewReason.NEW]


def test_a_new_password_leaves_a_server_the_same_and_stands_nowhere(tmp_path):
    def identity(entry):
        (upstream,) = read_gateway_config(
            {"mcpServers": {"sums": entry}}, {"TOKEN": "s3cret-token", "ROTATED": "another-secret"}
        ).upstreams
        return server_identity(upstream.server)

    stdio = {"command": "sums", "args": ["--token", "${TOKEN}"]}
    http = {"url": "https://u:${TOKEN}@sums.example/mcp?key=${TOKEN}"}
    for entry in (stdio, http):
        rotated = json.loads(json.dumps(entry).replace("TOKEN", "ROTATED"))
        assert identity(entry) == identity(rotated)
        assert "s3cret" not in identity(entry)
    assert identity(http) != identity({"url": "https://other.example/mcp?key=${TOKEN}"})


def test_pins_are_for_their_owner_alone(tmp_path):
    judge(make_gate(config(tmp_path / "state")), PLAIN)

    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    files = [file for file in (tmp_path / "state").iterdir() if file.is_file()]
    assert {file.name for file in files} >= {"trust.db"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_server_that_changes_all_the_time_fills_one_row(tmp_path):
    gate = make_gate(config(tmp_path))
    judge(gate, PLAIN)
    for clock in range(20):
        judge(gate, tool(f"Adds. It is {clock} o'clock."))

    assert list(PinStore.of(config(tmp_path)).waiting("sums")) == ["add"]


def test_what_waited_is_forgotten_once_the_server_is_as_approved_again(tmp_path):
    gate = make_gate(config(tmp_path))
    for entry in (PLAIN, OTHER, PLAIN):
        judge(gate, entry)

    assert PinStore.of(config(tmp_path)).waiting("sums") == {}


def test_a_store_names_an_unknown_server_and_a_file_that_is_none(tmp_path):
    with pytest.raises(BadSettingError, match="there is no server 'sum' in the configuration; there are: sums"):
        PinStore.of(config(tmp_path)).approve("sum", "add", "0" * 64, "ann")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "trust.db").write_text("no database " * 100)
    with pytest.raises(StorageError, match="approved tools"):
        make_gate(config(tmp_path / "broken"))


def test_an_entry_of_lone_surrogates_can_be_pinned_and_shown(tmp_path):
    judge(make_gate(config(tmp_path)), tool("Adds \ud800."))

    entry = PinStore.of(config(tmp_path)).entry("sums", "add", is_approved=True)
    assert entry == tool("Adds \ud800.")


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": {"c": [1, 3]}}, ("~ b.c[1]",)),
        ({"a": 1}, {"b": 1}, ("- a", "+ b")),
        ({"a": [1]}, {"a": [1, 2]}, ("~ a",)),
        ({"a": 1}, {"a": True}, ("~ a",)),
        ({"a\x1b": 1}, {}, ("- a\\u{1b}",)),
        ({}, {f"{n:02}": 0 for n in range(22)}, (*(f"+ {n:02}" for n in range(20)), "... and 2 more")),
    ],
)
def test_differences_are_told_by_place(before, after, places):
    assert changed_places(before, after) == places


async def test_every_way_into_the_catalog_leads_through_the_gate(tmp_path):
    """A listing, later ones, and a second look at one."""
    catalog = Catalog()
    registry = Registry(catalog, make_gate(config(tmp_path)), Reach())
    good = tool("Multiplies.", name="mul")

    outcome = await registry.publish(Listing("sums", (listed(POISON), listed(good))))
    assert [held.name for held in outcome.held] == ["sums__add"]
    for _ in range(2):
        assert registry.find_entry("sums__add") is None
        assert list(catalog.snapshot().tools) == ["sums__mul"]
        await registry.review("sums")

    PinStore.of(config(tmp_path)).approve("sums", "add", outcome.held[0].pin, "ann")
    await registry.review("sums")
    assert sorted(catalog.snapshot().tools) == ["sums__add", "sums__mul"]
    PinStore.of(config(tmp_path)).revoke("sums", "add", "ann")
    await registry.review("sums")
    assert list(catalog.snapshot().tools) == ["sums__mul"]


@pytest.mark.parametrize("is_own", [False, True])
async def test_requests_are_looked_up_only_for_what_was_admitted(tmp_path, is_own):
    """A held tool is not indexed, whatever requests it has in the packs that ship or in a user's own file."""
    catalog, index, file = Catalog(), SubstringIndex(), tmp_path / "requests.jsonl"
    held = ToolDefinition("sums__convert_time", "Convert time between timezones", server="sums")
    write_requests(file, [packed_tool(held, ("is it late there",))])
    source = packs_in(file) if is_own else shipped_requests()
    followed = CatalogIndex(catalog, index, requests=source)
    registry = Registry(catalog, make_gate(config(tmp_path, {"firstSeen": "quarantine"})), Reach())
    known = tool("Convert time between timezones", name="convert_time")

    outcome = await registry.publish(Listing("sums", (listed(known),)))
    assert (outcome.admitted, index.documents) == ((), {})
    PinStore.of(config(tmp_path)).approve("sums", "convert_time", outcome.held[0].pin, "ann")
    await registry.review("sums")
    assert index.documents["sums__convert_time"].requests != ()
    PinStore.of(config(tmp_path)).revoke("sums", "convert_time", "ann")
    await registry.review("sums")
    assert index.documents == {}
    followed.close()


async def test_what_is_held_is_logged_with_its_reasons(tmp_path, caplog):
    await Registry(Catalog(), make_gate(config(tmp_path)), Reach()).publish(Listing("sums", (listed(POISON),)))

    [message] = caplog.messages
    assert message.startswith("sums__add is held")
    assert message.endswith("suspicious, overrides-instructions in description")


async def test_what_is_warned_of_is_in_the_registry_for_people_to_see(tmp_path):
    registry = Registry(Catalog(), make_gate(config(tmp_path, {"suspicious": "warn"})), Reach())
    outcome = await registry.publish(Listing("sums", (listed(POISON),)))

    assert [each.name for each in outcome.admitted] == ["sums__add"]
    assert [each.why for each in registry.servers["sums"].warnings] == [ReviewReason.SUSPICIOUS]


def test_many_gateways_may_make_the_pins_at_once(tmp_path):
    here = config(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        gates = list(pool.map(lambda _: make_gate(here), range(8)))
    judge(gates[0], PLAIN)
    assert why(judge(gates[7], OTHER)) == [ReviewReason.CHANGED]
    assert {file.name.partition("-")[0] for file in tmp_path.iterdir() if file.is_file()} == {"trust.db"}


ENTRIES = [
    (
        tool_entry(
            listed(
                {
                    "name": "add",
                    "description": "Add two numbers – sum",
                    "inputSchema": {"properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
                    "_meta": {"x": [1, True, None, 1.5]},
                    "annotations": {"title": "Add", "readOnlyHint": True},
                }
            )
        ),
        "1a3971efe0aa31c92c81bf8a85203f9fa1d2db22edb74d57cd58b8f0ca9088fb",
    ),
    (
        content_entry("sums", Kind.PROMPT, {"name": "p", "description": "d"}),
        "1900d5473e88e7f2832e8b81f9d61dca8d1519590b15de681fef385ed9d40c81",
    ),
    (
        content_entry(
            "sums",
            Kind.RESOURCE,
            {
                "uri": "file:///a",
                "name": "p",
                "size": 3,
                "annotations": {"lastModified": "2025-01-12T15:00:58Z", "audience": ["user"]},
            },
        ),
        "4d0bdc9823ff4157df371fb811748f0845ab5ed3a70be8a9629dde5617b4ca85",
    ),
    (
        content_entry("sums", Kind.TEMPLATE, {"uriTemplate": "file:///{a}", "name": "p"}),
        "426744e0f15d11ef04153192840e6ed9daf6edc5380176846f78058480239971",
    ),
    (
        content_entry("sums", Kind.INSTRUCTIONS, {"instructions": "Be brief."}),
        "6cdc9eb9eddedcd2719cf9c36872288a6d4af88dcf028cd172309e4b246e27c7",
    ),
]


@pytest.mark.parametrize(("entry", "pin"), ENTRIES, ids=[entry.kind.name for entry, _ in ENTRIES])
def test_a_pin_is_the_same_in_every_version(entry, pin):
    """Approvals are kept by it: another one would hold everything that people have approved."""
    assert entry.pin() == pin


def test_what_no_server_lists_cannot_be_approved():
    with pytest.raises(BadToolError, match="local cannot be approved"):
        tool_entry(Tool(ToolDefinition("local")))


def test_a_person_s_decisions_are_recorded(tmp_path):
    gate = make_gate(config(tmp_path, {"firstSeen": "quarantine"}))
    held = judge(gate, PLAIN).held[0]
    store = PinStore.of(config(tmp_path))
    store.approve("sums", "add", held.pin, "ann")
    store.revoke("sums", "add", "bob")

    with SqliteAuditLog(tmp_path / "trust.db") as audit:
        assert [(each.who, each.action, each.outcome) for each in audit.records(limit=9)] == [
            ("ann", "approve", "done"),
            ("bob", "revoke", "done"),
        ]
