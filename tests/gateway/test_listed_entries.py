"""What of a tool is listed: all that its server said and a client of that version can read."""

import json
from typing import Any

import pytest
from mcp.types import methods

from tests.kit.fake_servers import entry
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.entries import read_listing
from toolsearch.wire.mcp.eras import Era, entry_for

FAULTY = {
    **entry("dig"),
    "title": 7,
    "icons": "none",
    "annotations": {"readOnlyHint": True, "destructiveHint": "perhaps", "colour": "green"},
    "_meta": [],
    "outputSchema": {"type": "array"},
    "x-unknown": {"kept": True},
}


def tool_of(raw: dict[str, Any]) -> Tool:
    ((tool,), _) = read_listing("a", [raw], "a")
    return tool


@pytest.mark.parametrize(("era", "version"), [(Era.LEGACY, "2025-11-25"), (Era.MODERN, "2026-07-28")])
def test_a_faulty_optional_field_is_left_out_and_what_no_version_knows_stays(era, version):
    listed = entry_for(tool_of(FAULTY), era)

    assert listed == {
        "name": "a__dig",
        "description": "Does dig.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "colour": "green"},
        "x-unknown": {"kept": True},
        **({"outputSchema": {"type": "array"}} if era is Era.MODERN else {}),
    }
    whole = {"tools": [listed], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    methods.validate_server_result("tools/list", version, whole)


def test_an_entry_without_faults_is_listed_as_it_came_but_for_its_name():
    raw = entry("dig", title="Dig", icons=[{"src": "https://example.org/i.png"}], _meta={"a": [1]}, execution={})

    for era in Era:
        assert json.dumps(entry_for(tool_of(raw), era)) == json.dumps({**raw, "name": "a__dig"})
