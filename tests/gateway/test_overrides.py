"""Tools of a server as the gateway's settings have them: off, with other words, with arguments of their own."""

from typing import Any

import pytest

from tests.kit.fake_servers import entry
from toolsearch.errors import BadSettingError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.overrides import Overrides, overrides_of
from toolsearch.tools.definition import Refusal, Tool
from toolsearch.upstreams.interface import read_listing
from toolsearch.wire.mcp.definitions import renamed_entry

LIST_ISSUES: dict[str, Any] = {
    "name": "list_issues",
    "title": "List issues",
    "description": "Lists issues.",
    "annotations": {"title": "List issues", "readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "owner": {"type": "string", "$comment": "whose"},
            "filter": {"$ref": "#/$defs/Filter"},
            "debug": {"$ref": "#/$defs/Debug"},
        },
        "required": ["owner"],
        "anyOf": [{"required": ["owner"]}, {"required": ["debug"]}],
        "$defs": {"Filter": {"$ref": "#/$defs/Inner~1er"}, "Inner/er": {"type": "string"}, "Debug": {"type": "object"}},
    },
    "outputSchema": {"type": "object"},
    "icons": [{"src": "data:,"}],
}


def overrides(**tools: Any) -> Overrides:
    section = {"servers": {"hub": {"tools": tools}}}
    read = read_gateway_config({"mcpServers": {"hub": {"command": "x"}}, "toolsearch": section}, {})
    return overrides_of(read.settings)("hub")


def overridden(*entries: Any, **tools: Any) -> tuple[list[Tool], list[Refusal]]:
    listed: list[Any] = [entry(each) if isinstance(each, str) else each for each in entries]
    return overrides(**tools).applied_to(read_listing("hub", listed, "hub")[0])


def names(*entries: Any, **tools: Any) -> list[str]:
    return [tool.name for tool in overridden(*entries, **tools)[0]]


def reasons(*entries: Any, **tools: Any) -> dict[str, str]:
    return {each.name: each.reason for each in overridden(*entries, **tools)[1]}


def test_a_tool_that_is_off_is_not_there_and_nobody_is_told_of_it() -> None:
    assert overridden("keep", "drop", drop={"enabled": False})[1] == []
    assert names("keep", "drop", drop={"enabled": False}) == ["hub__keep"]


def test_a_name_goes_before_a_glob_then_the_glob_with_more_letters_then_the_first() -> None:
    off, on = {"enabled": False}, {"enabled": True}
    tools = {"*": off, "get_*": on, "get_secret*": off, "get_secret_name": on, "*_name": off, "a*": on, "*a": off}

    listed = ["put_it", "get_it", "get_secret_key", "get_secret_name", "get_name", "a_a"]
    assert names(*listed, **tools) == ["hub__get_it", "hub__get_secret_name", "hub__a_a"]


def test_a_renamed_tool_keeps_the_prefix_of_its_server_and_loses_the_title_that_says_its_old_name() -> None:
    (tool,) = overridden(LIST_ISSUES, list_issues={"name": "issues", "description": "What is to be done."})[0]
    shown = renamed_entry(tool)

    assert (tool.name, tool.remote_name, tool.listed_name) == ("hub__issues", "list_issues", "hub__list_issues")
    assert (shown["name"], shown["description"]) == ("hub__issues", "What is to be done.")
    assert "title" not in shown
    assert shown["annotations"] == {"readOnlyHint": True}
    assert shown["icons"] == LIST_ISSUES["icons"]
    assert tool.origin is not None
    assert tool.origin.raw == LIST_ISSUES


def test_fixed_and_hidden_arguments_are_gone_from_the_schema_with_all_that_speaks_of_them() -> None:
    (tool,) = overridden(LIST_ISSUES, list_issues={"arguments": {"owner": "acme"}, "hidden": ["debug"]})[0]

    wanted = {
        "type": "object",
        "properties": {"filter": {"$ref": "#/$defs/Filter"}},
        "$defs": {"Filter": {"$ref": "#/$defs/Inner~1er"}, "Inner/er": {"type": "string"}},
    }
    assert tool.definition.input_schema == wanted
    assert set(renamed_entry(tool)["inputSchema"]["properties"]) == {"filter"}


def test_an_argument_that_the_tool_does_not_have_leaves_the_tool_out() -> None:
    """Otherwise a slip would let callers choose what the settings were to fix."""
    assert "no argument 'ownr'" in reasons(LIST_ISSUES, list_issues={"arguments": {"ownr": "acme"}})["hub__list_issues"]
    assert names(LIST_ISSUES, list_issues={"arguments": {"ownr": "acme"}}) == []
    assert names(LIST_ISSUES, list_issues={"hidden": ["debg"]}) == []


def test_an_argument_that_the_tool_needs_cannot_be_hidden_without_a_value() -> None:
    assert "needs the argument 'owner'" in reasons(LIST_ISSUES, list_issues={"hidden": ["owner"]})["hub__list_issues"]
    assert names(LIST_ISSUES, list_issues={"hidden": ["owner"], "arguments": {"owner": 1}}) == ["hub__list_issues"]


def test_of_two_tools_of_one_name_the_one_that_the_settings_name_is_kept() -> None:
    assert names("read", "get", get={"name": "read"}) == ["hub__read"]
    assert overridden("read", "get", get={"name": "read"})[0][0].remote_name == "get"
    assert "'get'" in reasons("read", "get", get={"name": "read"})["hub__read"]
    assert names("read", "get", get={"name": "read"}, read={"enabled": False}) == ["hub__read"]
    assert names("read", "get", get={"name": "read"}, read={"name": "get"}) == ["hub__get", "hub__read"]


def test_a_name_that_does_not_fit_behind_that_of_its_server_leaves_the_tool_out() -> None:
    assert "too long" in reasons("get", get={"name": "x" * 62})["hub__get"]


def test_settings_of_a_tool_that_its_server_does_not_list_are_told() -> None:
    assert "did you mean get_issue?" in reasons("get_issue", get_isue={"enabled": False})["hub__get_isue"]
    assert reasons("get_issue", **{"put_*": {"enabled": False}}) == {}


def test_a_tool_whose_results_are_changed_has_no_output_schema() -> None:
    (tool,) = overridden(LIST_ISSUES, list_issues={"result": {"cut": 9}})[0]
    assert "outputSchema" not in renamed_entry(tool)
    (tool,) = overridden(LIST_ISSUES, list_issues={"description": "x"})[0]
    assert "outputSchema" in renamed_entry(tool)


@pytest.mark.parametrize("results", ["servers", "trust"])
def test_no_tool_of_a_server_whose_results_are_masked_has_an_output_schema(results: str) -> None:
    section = {"trust": {"results": "mask"}} if results == "trust" else {"servers": {"*": {"results": "mask"}}}
    read = read_gateway_config({"mcpServers": {"hub": {"command": "x"}}, "toolsearch": section}, {})
    (tool,) = overrides_of(read.settings)("hub").applied_to(read_listing("hub", [LIST_ISSUES], "hub")[0])[0]
    assert "outputSchema" not in renamed_entry(tool)


def test_without_settings_the_tools_are_the_very_same() -> None:
    tools, _ = read_listing("hub", [LIST_ISSUES], "hub")
    assert overrides().applied_to(tools)[0][0] is tools[0]
    assert overrides(other={"enabled": False}).applied_to(tools)[0][0] is tools[0]


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ({"a": {"name": "x"}, "b": {"name": "x"}}, r"tools cannot be used: a and b would both be called x"),
        ({"a*": {"name": "x"}}, "a* fits several tools"),
        ({"[a": {}}, "without its"),
        ({"a": {"name": "x y"}}, r"tools\.a\.name"),
        ({"a": {"enable": False}}, "did you mean enabled"),
        ({"a": {"arguments": {"x": "team-${claim:org}"}}}, "a claim has to be the whole value"),
        ({"a": {"arguments": {"x": [{"y": "${claim:}"}]}}}, "a claim has to be the whole value"),
        ({"a": {"result": {"cut": 0}}}, "result"),
        ({"a": {"result": {"pik": "/a"}}}, "result"),
        ({"a": {"result": {"pick": "/a"}}}, "result"),
        ({"a": {"result": {"pick": ["a"]}}}, "result"),
        ({"a": {"result": {"pick": []}}}, "result"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_when_they_are_read(tools: Any, told: str) -> None:
    with pytest.raises(BadSettingError, match=told.replace("*", r"\*")):
        overrides(**tools)
