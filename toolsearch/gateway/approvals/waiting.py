"""Entries that await approval, for commands to show. Reading them changes nothing: it does not count as a first
sight.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolsearch.access.principals import LOCAL
from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.documents.skills import Skill
from toolsearch.errors import BadToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.registry import Registry, content_entries, with_files_of_skills
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.gateway.trust.differences import Place, places_of, worded
from toolsearch.gateway.trust.gate import PinStore, make_gate
from toolsearch.gateway.trust.verdicts import (
    FOUND,
    Entry,
    Kind,
    ReviewItem,
    ReviewReason,
    ToolGate,
    content_entry,
    tool_entry,
)
from toolsearch.storage.decisions import APPROVALS_FILE
from toolsearch.storage.sqlite.stores import SqlitePins
from toolsearch.tools.definition import SafetyClass, Tool, worst_safety_of
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.contents import SkillFolders
from toolsearch.upstreams.interface import read_listing


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry that awaits approval. *before* is its approved definition, if there is one."""

    held: ReviewItem
    before: JsonObject | None
    now: JsonObject

    @property
    def server(self) -> str:
        return self.held.server

    @property
    def name(self) -> str:
        """The server's own name for it."""
        return self.held.entry.remote_name

    @property
    def safety(self) -> str:
        """The most dangerous class of a tool by its own hints; ``read`` for a skill, "" for other entries."""
        if self.held.kind is not Kind.TOOL:
            return SafetyClass.READ.value if self.held.kind is Kind.SKILL else ""
        annotations = self.now.get("annotations")
        return worst_safety_of(annotations if is_object(annotations) else {}).value

    @property
    def compared(self) -> tuple[JsonObject | None, JsonObject]:
        """The approved and the waiting version, in the form in which they are compared: a skill has its files by
        path.
        """
        if self.held.kind is not Kind.SKILL:
            return self.before, self.now
        return None if self.before is None else _by_file(self.before), _by_file(self.now)

    @property
    def places(self) -> list[Place]:
        """Every place of either version, with the words that differ marked."""
        return places_of(*self.compared)

    @property
    def difference(self) -> list[str]:
        """A line for each place that differs; for every place if nothing was approved before."""
        return [f"{place.name}: {worded(place)}" for place in self.places if place.is_changed]

    def written(self) -> JsonObject:
        """The entry as the status page, commands and the service show it."""
        return {
            **self.held.written(),
            "approved": self.before,
            "waiting": self.now,
            "difference": [*self.difference],
        }


def _by_file(entry: JsonObject) -> JsonObject:
    try:
        paths = {each.uri: each.path for each in Skill.from_entry(entry).files.values()}
    except BadToolError:  # pinned by an older version with weaker rules
        return entry
    others = {name: value for name, value in entry.items() if name != "resources"}
    listed = (as_object(each) or {} for each in as_list(entry.get("resources")) or ())
    return {**others, "files": {paths[str(each["uri"])]: each for each in listed}}


def local_person() -> str:
    """The user of this process, for the record of a decision."""
    import getpass

    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a number without a name; Windows may give none
        number = getattr(os, "getuid", None)
        return f"user {number()}" if number else "somebody"


def person_of(caller: Caller) -> str:
    """Who makes the request, for the record of a decision."""
    return local_person() if caller.grant.principal == LOCAL else caller.grant.key_id or caller.principal.id


@contextmanager
def gate_that_only_looks(config: GatewayConfig) -> Generator[ToolGate]:
    """The gate of *config* over a copy of its pins, for use within the block."""
    with tempfile.TemporaryDirectory() as scratch:
        pins = config.settings.state_folder / APPROVALS_FILE
        if pins.is_file():
            with SqlitePins(pins) as kept:
                kept.copy_to(Path(scratch) / APPROVALS_FILE)
        copied = replace(config, settings=config.settings.model_copy(update={"state_dir": Path(scratch)}))
        with closing(make_gate(copied)) as gate:
            yield gate


def waiting_entries(config: GatewayConfig, store: PinStore) -> list[Waiting]:
    """The entries that await approval in the servers' last listings, by server, kind and name. No server is started."""
    known = {each.name: _known(store, each.name) for each in config.upstreams}
    waiting: list[Waiting] = []
    with gate_that_only_looks(config) as gate:
        for server, entries in known.items():
            others = [
                entry for name, theirs in known.items() if name != server for entry in theirs if entry.kind in FOUND
            ]
            skills = SkillFolders(entry.raw for entry in entries if entry.kind is Kind.SKILL)
            verdict = with_files_of_skills(gate.judge(server, entries, others=others), entries, skills)
            held = {(each.kind, each.name): each for each in verdict.held}
            waiting += [
                _waiting(store, entry, held[entry.kind, entry.name])
                for entry in entries
                if (entry.kind, entry.name) in held
            ]
    return waiting


def waiting_in(registry: Registry, store: PinStore) -> list[Waiting]:
    """The entries that await approval in a running gateway, by server, kind and name."""
    waiting: list[Waiting] = []
    for server, listing in sorted(registry.listings.items()):
        held = {(each.kind, each.name): each for each in registry.servers[server].held}
        entries = [*map(tool_entry, listing.tools), *content_entries(listing)]
        doubted = [(entry, held.get((entry.kind, entry.name))) for entry in entries]
        of_server = [_waiting(store, entry, item) for entry, item in doubted if item is not None]
        waiting += sorted(of_server, key=lambda each: (each.held.kind.value, each.name))
    return waiting


def refused_last(waiting: Sequence[Waiting]) -> list[Waiting]:
    """*waiting*, with what somebody has refused behind what nobody has decided about."""
    return sorted(waiting, key=lambda each: each.held.why is ReviewReason.REFUSED)


def waiting_of(registry: Registry, store: PinStore, held: Tool) -> Waiting | None:
    """The entry *held* of a running gateway; None if it does not await approval any more."""
    entry = tool_entry(held)
    items = registry.servers[entry.server].held if entry.server in registry.servers else ()
    item = next((each for each in items if (each.kind, each.name) == (entry.kind, entry.name)), None)
    return None if item is None else _waiting(store, entry, item)


def _known(store: PinStore, server: str) -> Sequence[Entry]:
    """The last definition of each entry of *server* that was ever approved or held."""
    tools, _ = read_listing(server, _kept(store, server, Kind.TOOL), server)
    others = [
        content_entry(server, kind, raw) for kind in Kind if kind is not Kind.TOOL for raw in _kept(store, server, kind)
    ]
    return [*map(tool_entry, tools), *others]


def _kept(store: PinStore, server: str, kind: Kind) -> list[JsonObject]:
    waiting = store.waiting(server, kind)
    names = sorted({*store.approved(server, kind), *waiting})
    entries = (store.entry(server, name, kind, is_approved=name not in waiting) for name in names)
    return [entry for entry in entries if entry is not None]


def _waiting(store: PinStore, entry: Entry, held: ReviewItem) -> Waiting:
    before = store.entry(entry.server, entry.remote_name, entry.kind, is_approved=True)
    return Waiting(held, before, entry.raw)
