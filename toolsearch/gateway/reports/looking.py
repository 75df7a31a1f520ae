"""Looks at what trust says without leaving a trace: a first sight by a command is none for the gateway."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolsearch.catalog.sources.mcp_listing import read_listing
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.gateway.tools import GatewayTool
from toolsearch.gateway.trust.gate import make_gate
from toolsearch.gateway.trust.pins import FILE, PinStore
from toolsearch.gateway.trust.protocol import Held, ToolGate
from toolsearch.tools.definition import JsonObject


@dataclass(frozen=True, slots=True)
class Waiting:
    """A tool that waits. *tool* is the name that the server gives it, *before* what is approved of it, if anything."""

    server: str
    tool: str
    held: Held
    before: JsonObject | None
    now: JsonObject


@contextmanager
def gate_that_only_looks(config: GatewayConfig) -> Generator[ToolGate]:
    """The gate of *config* over a copy of its pins, to be used within the block."""
    with tempfile.TemporaryDirectory() as scratch:
        pins = config.settings.state_folder / FILE
        if pins.is_file():
            _copy(pins, Path(scratch) / FILE)
        yield make_gate(replace(config, settings=config.settings.model_copy(update={"state_dir": Path(scratch)})))


def waiting_tools(config: GatewayConfig, store: PinStore) -> list[Waiting]:
    """What waits by the servers' last listings, by server and name; no server is started for it."""
    known = {each.name: _known(store, each.name) for each in config.upstreams}
    waiting: list[Waiting] = []
    with gate_that_only_looks(config) as gate:
        for server, tools in known.items():
            others = [tool for name, theirs in known.items() if name != server for tool in theirs]
            held = {each.name: each for each in gate.judge(server, tools, others=others).held}
            waiting += [_waiting(store, tool, held[tool.name]) for tool in tools if tool.name in held]
    return waiting


def _copy(source: Path, target: Path) -> None:
    """Whole, even while a gateway writes to it."""
    with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)


def _known(store: PinStore, server: str) -> Sequence[GatewayTool]:
    """The last definition of each tool of *server* that was ever approved or held."""
    waiting = store.waiting(server)
    names = sorted({*store.approved(server), *waiting})
    entries = [store.entry(server, name, is_approved=name not in waiting) for name in names]
    listed, _ = read_listing(server, entries, server)
    return [GatewayTool(server, tool.remote_name, tool.definition, tool.raw) for tool in listed]


def _waiting(store: PinStore, tool: GatewayTool, held: Held) -> Waiting:
    before = store.entry(tool.server, tool.remote_name, is_approved=True)
    return Waiting(tool.server, tool.remote_name, held, before, tool.raw)
