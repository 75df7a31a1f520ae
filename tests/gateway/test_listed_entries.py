"""What of a tool is listed: all that its server said and a client of that version can read."""

import json
from typing import Any

import pytest
from mcp.types import methods

from tests.kit.fake_servers import EXPANDING, call, entry, gateway_of, search
from tests.kit.strict.one_tool import problems_of_tool
from toolsearch.access.principals import LOCAL
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.interface import read_listing
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


async def test_a_client_is_listed_names_that_its_model_takes_and_the_server_is_called_by_its_own() -> None:
    """Clients hand the schema on to a model's API, which refuses each later request for one such name."""
    schema = {"type": "object", "properties": {"$.xgafv": {"type": "string"}}, "additionalProperties": False}
    async with gateway_of("maps") as (gateway, servers):
        await servers["maps"].lists(entry("route", inputSchema=schema))
        found = str(await search(gateway, EXPANDING, "select:maps__route"))
        (listed,) = [each for each in await gateway.list_tools(EXPANDING) if each["name"] == "maps__route"]
        await call(gateway, "maps__route", {"xgafv": "1"}, EXPANDING)
        await call(gateway, "maps__route", {"$.xgafv": "2"}, EXPANDING)
        await call(gateway, "callToolDestructive", {"name": "maps__route", "arguments": {"xgafv": "3"}})

        assert problems_of_tool("mcp", listed) == []
        assert gateway.surface.input_schema("maps__route", LOCAL.reach) == listed["inputSchema"]
        assert "route(xgafv)" in found
        assert servers["maps"].called == [("route", {"$.xgafv": each}) for each in "123"]


def tool_of(raw: dict[str, Any]) -> Tool:
    ((tool,), _) = read_listing("a", [raw], "a")
    return tool


@pytest.mark.parametrize(("era", "version"), [(Era.LEGACY, "2025-11-25"), (Era.MODERN, "2026-07-28")])
def test_a_faulty_optional_field_is_left_out_and_what_no_version_knows_stays(era, version):
    listed = entry_for(tool_of(FAULTY), era)

    assert listed == {
        "name": "a__dig",
        "description": "Does dig.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True, "colour": "green"},
        "x-unknown": {"kept": True},
        **({"outputSchema": {"type": "array"}} if era is Era.MODERN else {}),
    }
    whole = {"tools": [listed], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    methods.validate_server_result("tools/list", version, whole)


def test_an_entry_without_faults_is_listed_as_it_came_but_for_its_name():
    schema = {"type": "object", "properties": {"depth": {"type": "integer"}}}
    raw = entry(
        "dig",
        inputSchema=schema,
        title="Dig",
        icons=[{"src": "https://example.org/i.png"}],
        _meta={"a": [1]},
        execution={},
    )

    for era in Era:
        assert json.dumps(entry_for(tool_of(raw), era)) == json.dumps({**raw, "name": "a__dig"})
