"""Ask one tool search inside its own environment: ``python worker.py REQUEST ANSWER``.

It needs nothing but the standard library and the system's file in ``systems``, so that it runs wherever a peer does.
REQUEST is JSON: the *system* as ``file:class``, *tools*, *queries*, how many hits at most (*limit*), the *packages* whose
versions are told, and the file in which *vectors* of tools are kept. ANSWER gets the rankings (names), the versions,
and what it took: CPU seconds of all threads, without importing libraries and loading models, which are done before.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import minilm

WARM_UP = "list what is there"  # several index at the first search; that is counted as indexing


def answer(request: dict[str, Any]) -> dict[str, Any]:
    file, _, name = request["system"].partition(":")
    minilm.keep_in(request["vectors"])
    system = getattr(importlib.import_module(f"systems.{file}"), name)()
    started_s = time.process_time()
    system.index(request["tools"])
    system.search(WARM_UP, request["limit"])
    index_s = time.process_time() - started_s + minilm.borrowed_s()
    rankings: list[list[str]] = []
    search_ms: list[float] = []
    for query in request["queries"]:
        started_s = time.process_time()
        found = system.search(query, request["limit"])
        search_ms.append((time.process_time() - started_s) * 1e3)
        rankings.append(list(found)[: request["limit"]])
    versions = {package: version(package) for package in request["packages"]}
    return {"rankings": rankings, "index_s": index_s, "search_ms": search_ms, "versions": versions}


if __name__ == "__main__":
    asked, answered = map(Path, sys.argv[1:])
    result = answer(json.loads(asked.read_text(encoding="utf-8")))
    answered.write_text(json.dumps(result), encoding="utf-8")
