"""Peers as systems of the benchmarks, and our systems as adapters for the peers' probes."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
import runpy
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from benchmarks.recall import Search, System, Tools
from toolsearch.evaluation.measures import DEPTH

_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_STEM = 128 - len("_9999")


class Adapter(Protocol):
    """A tool search behind the interface of an adapters file; tools have a name, a description and an input_schema."""

    def index(self, tools: list[dict[str, Any]]) -> None: ...

    def search(self, query: str, k: int) -> list[str]: ...


def load_adapters(path: Path) -> ModuleType:
    """Run the file as the module ``adapters``, the name by which the probes import it."""
    spec = importlib.util.spec_from_file_location("adapters", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["adapters"] = module
    spec.loader.exec_module(module)
    return module


def peer_system(make: Callable[[], Adapter], *, with_schemas: bool = True) -> System:
    """Give the peer each tool under a legal form of its id, and take the names that it finds back to ids."""

    def system(tools: Tools) -> Search:
        ids = [tool["id"] for tool in tools]
        names = list(legal_names(ids))
        id_of = dict(zip(names, ids, strict=True))
        adapter = make()
        adapter.index(
            [
                {
                    "name": name,
                    "description": tool["description"],
                    "input_schema": tool["input_schema"] if with_schemas else {},
                }
                for name, tool in zip(names, tools, strict=True)
            ]
        )
        return lambda query: [id_of[name] for name in adapter.search(query, DEPTH)]

    return system


def legal_names(ids: Sequence[str]) -> Iterator[str]:
    """Yield a name for each id, in order, as the MCP allows it; no two are equal.

    A legal id is kept. In others ``_`` takes the place of what is forbidden; if the name is taken it ends in ``_2`` or
    more.
    """
    taken = {given for given in ids if _LEGAL.fullmatch(given)}
    for given in ids:
        if given in taken:
            yield given
            continue
        stem = _ILLEGAL.sub("_", given)[:_LONGEST_STEM]
        name = next(name for name in _numbered(stem) if name not in taken)
        taken.add(name)
        yield name


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


def probe(
    script: Path, adapters: ModuleType, ours: Mapping[str, System], peers: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Run the script of probes, which imports *adapters*, is told which of them to probe, and leaves its ``rows``.

    Gives them, by system and then by probe: "1" if the wanted tool came first, "✓" if among the first five, else "-".
    A system that fails is printed by the script and left out.
    """
    script = script.resolve()
    vars(adapters)["REGISTRY"] |= {name: partial(_AsAdapter, system) for name, system in ours.items()}
    arguments = sys.argv
    sys.argv = [script.name, *ours, *peers]
    try:
        # The script writes a file where it runs, and silences warnings and logging for the whole process.
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
            rows: dict[str, dict[str, str]] = runpy.run_path(str(script))["rows"]
    finally:
        sys.argv = arguments
        logging.disable(logging.NOTSET)
    return rows


@dataclass(slots=True)
class _AsAdapter:
    system: System
    _search: Search = field(init=False)

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._search = self.system([{**tool, "id": tool["name"]} for tool in tools])

    def search(self, query: str, k: int) -> list[str]:
        return self._search(query)[:k]
