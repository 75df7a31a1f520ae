"""Callbacks that are given the MCP request itself, so that they can pass it on to another gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from toolsearch.gateway.caller import Caller
from toolsearch.tools.definition import ToolCallback
from toolsearch.upstreams.interface import Downstream


@runtime_checkable
class RawToolCallback(ToolCallback, Protocol):
    """A callback for a tool that is found under another name, or in another place, than where it is called.

    The gateway calls `call_raw` in place of `call`, which serves everybody else.
    """

    async def call_raw(self, params: Mapping[str, Any], caller: Caller, downstream: Downstream) -> dict[str, Any]:
        """Answer ``tools/call`` with *params*, whose arguments are checked; return the raw result for *caller*'s era.

        What the client brings back from an earlier round (answers, and the state of the server) is in *params*, too.
        *downstream* can be told of progress and asked questions. Raises what `Gateway.call` raises.
        """
        ...
