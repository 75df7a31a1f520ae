"""The arguments of a call as text or as an object, whichever a format wants."""

from __future__ import annotations

import json
from typing import cast

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json


def arguments_text(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def arguments_object(call: ToolCall) -> dict[str, Json]:
    """For APIs that take nothing but an object; what a model wrote instead, half an object too, is put into one."""
    arguments = call.arguments
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        parsed: object = json.loads(arguments or "{}")
    except ValueError:
        parsed = None
    return cast("dict[str, Json]", parsed) if isinstance(parsed, dict) else {"arguments": arguments}
