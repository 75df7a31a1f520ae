"""Requests that no tool of a server serves: the tools they name are there, and none is served after all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import training.request_packs as packs

DATA = Path(packs.__file__).parent / "data"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_names_the_tool_that_comes_nearest_and_is_no_request_of_a_tool() -> None:
    tools = [tool for path in sorted(packs.SOURCES.glob("*.jsonl")) for tool in rows(path)]
    names = {(tool["server"], tool["name"]) for tool in tools}
    served = {(tool["server"], request.lower()) for tool in tools for request in tool["requests"]}
    found = rows(DATA / "out_of_scope.jsonl")
    assert {row["kind"] for row in found} == {"same field", "wrong object"}
    assert {(row["server"], row["near"]) for row in found} <= names
    assert served.isdisjoint({(row["server"], row["request"].lower()) for row in found})


def test_none_is_among_what_is_measured_with() -> None:
    measured = DATA.parents[2] / "benchmarks" / "out_of_scope.jsonl"
    requests = {row["request"].lower() for row in rows(measured)}
    assert requests.isdisjoint(row["request"].lower() for row in rows(DATA / "out_of_scope.jsonl"))
