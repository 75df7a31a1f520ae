"""Requests for tools of public APIs that are alike: each is served by its tool, or by none of the few."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import training.corpora as corpora

FILE = Path(corpora.__file__).parent / "data" / "neighbours.jsonl"


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_each_line_has_tools_that_are_told_apart_with_at_most_two_requests_each(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        assert line.keys() == {"tools", "unserved"}
        assert all(tool.keys() == {"api", "name", "requests"} for tool in line["tools"])
        assert len({(tool["api"], tool["name"]) for tool in line["tools"]}) == len(line["tools"]) > 1
        assert all(len(tool["requests"]) <= 2 for tool in line["tools"])


def test_what_nothing_serves_names_the_tool_that_comes_nearest(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        assert all(case.keys() == {"request", "near"} for case in line["unserved"])
        assert all(0 <= case["near"] < len(line["tools"]) for case in line["unserved"])


def test_no_request_of_a_line_is_blank_or_asked_twice(lines: list[dict[str, Any]]) -> None:
    """So none that nothing serves is one that a tool serves."""
    for line in lines:
        asked = [request for tool in line["tools"] for request in tool["requests"]]
        asked += [case["request"] for case in line["unserved"]]
        said = [" ".join(request.lower().split()) for request in asked]
        assert all(said)
        assert len(set(said)) == len(said)


def test_none_is_of_an_api_that_is_measured_with(lines: list[dict[str, Any]]) -> None:
    apis = {tool["api"] for line in lines for tool in line["tools"]}
    assert len(apis) > 500
    assert not [api for api in apis if api.startswith(corpora.LEFT_OUT)]
    assert not [api for api in apis if any(one in api for one in ("googleapis", "amazonaws", "azure", "github"))]
