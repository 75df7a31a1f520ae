"""Calls through a call tool."""

import pytest

from toolsearch.discovery.call_tools import InnerCall
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall


def test_parameters_beside_the_name_are_answered_with_where_they_go() -> None:
    with pytest.raises(BadArgumentsError, match=r"statistics__median.*'arguments'"):
        InnerCall.parse(ToolCall("1", "callTool", {"name": "statistics__median", "data": [1, 2]}))


def test_a_tool_without_parameters_needs_none() -> None:
    call = InnerCall.parse(ToolCall("1", "callTool", {"name": "uuid4"}))

    assert call is not None
    assert call.arguments == {}
