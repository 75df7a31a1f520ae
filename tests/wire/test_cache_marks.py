"""Marks for Anthropic's prompt cache: users' own stay, and no request gets more than the API takes."""

from typing import Any

import pytest

from toolsearch.wire.anthropic import with_cache_mark

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TEXT = {"type": "text", "text": "a"}
TOOLS = [{"name": "a"}, {"name": "b", "defer_loading": True}]


def request(*blocks: dict[str, Any], system: Any = "Be brief.", **more: Any) -> dict[str, Any]:
    return {"tools": TOOLS, "system": system, "messages": [{"role": "user", "content": list(blocks)}], **more}


@pytest.mark.parametrize("asked", [request(TEXT), request(TEXT, system=[TEXT | HOUR]), request(TEXT | HOUR, TEXT)])
def test_a_request_gets_one_mark_beside_those_of_its_user(asked: dict[str, Any]) -> None:
    assert with_cache_mark(asked, marks_requests=True) == asked | MARK


@pytest.mark.parametrize(
    "asked",
    [
        request(TEXT, **HOUR),
        request(TEXT, TEXT | HOUR),
        request(*[TEXT | MARK] * 3, TEXT, system=[TEXT | MARK]),
    ],
    ids=["its own", "on the last block", "four"],
)
def test_a_request_whose_marks_leave_no_room_stays_as_it_is(asked: dict[str, Any]) -> None:
    assert with_cache_mark(asked, marks_requests=True) == asked


def test_a_mark_on_a_tool_stands_on_none_that_is_deferred_and_before_no_other_mark() -> None:
    """A mark that lives longer must not come after it."""
    tools = [{"name": "a"} | MARK, *TOOLS[1:]]

    assert with_cache_mark(request(TEXT), marks_requests=False) == request(TEXT) | {"tools": tools}
    asked = request(TEXT, system=[TEXT | HOUR])
    assert with_cache_mark(asked, marks_requests=False) == asked
    assert with_cache_mark({"tools": TOOLS[1:]}, marks_requests=False) == {"tools": TOOLS[1:]}
    assert TOOLS[0] == {"name": "a"}
