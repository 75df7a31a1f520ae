"""Ask one tool search inside its own environment: ``python worker.py REQUEST ANSWER``.

It needs nothing but the standard library and the system's file in ``systems``, so that it runs wherever a peer does.
REQUEST is JSON: the *system* as ``file:class``, *catalogues* of *tools* and *queries*, how many hits at most (*limit*),
the *packages* whose versions are told, and the file in which *vectors* of tools are kept. ANSWER gets a line for each
catalogue as soon as it is done: the rankings (names), the versions, and what it took in CPU seconds of all threads,
without importing libraries and loading models, which is done before.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import minilm

WARM_UP = "list what is there"  # several index at the first search; that is counted as indexing


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    file, _, name = request["system"].partition(":")
    minilm.keep_in(request["vectors"])
    make = getattr(importlib.import_module(f"systems.{file}"), name)
    versions = {package: version(package) for package in request["packages"]}
    for catalogue in request["catalogues"]:
        yield {"versions": versions, **_asked(make(), catalogue["tools"], catalogue["queries"], request["limit"])}


def _asked(system: Any, tools: list[dict[str, Any]], queries: list[str], limit: int) -> dict[str, Any]:
    borrowed_s, started_s = minilm.borrowed_s(), time.process_time()
    system.index(tools)
    system.search(WARM_UP, limit)
    index_s = time.process_time() - started_s + minilm.borrowed_s() - borrowed_s
    rankings: list[list[str]] = []
    search_ms: list[float] = []
    for query in queries:
        started_s = time.process_time()
        found = system.search(query, limit)
        search_ms.append((time.process_time() - started_s) * 1e3)
        rankings.append(list(found)[:limit])
    return {"rankings": rankings, "index_s": index_s, "search_ms": search_ms}


if __name__ == "__main__":
    asked, answered = map(Path, sys.argv[1:])
    with answered.open("a", encoding="utf-8") as lines:
        for each in answers(json.loads(asked.read_text(encoding="utf-8"))):
            print(json.dumps(each), file=lines, flush=True)
