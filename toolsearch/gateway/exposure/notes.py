"""The notes below the answer to a search: about servers, and about tools that await approval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolsearch.access.reach import Reach
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.gateway.exposure.server_states import ServerStateNotes
from toolsearch.gateway.exposure.unapproved import UnapprovedTools
from toolsearch.gateway.registry import Registry
from toolsearch.tools.definition import ToolReference
from toolsearch.upstreams.interface import UpstreamState


class AnswerNotes:
    """Writes the notes. Safe to share between threads. Nothing out of the caller's reach is mentioned."""

    def __init__(self, states: Callable[[], Mapping[str, UpstreamState]], registry: Registry, rules: Reach) -> None:
        self._registry = registry
        self._states = ServerStateNotes(states, registry, rules)
        self._unapproved = UnapprovedTools(registry)

    def of(self, asked: SearchArguments, found: Sequence[ToolReference], reach: Reach) -> str:
        """The notes on a search for *asked* by a caller with *reach*, one a line; "" if there are none."""
        tools = [self._registry.find(reference.name) for reference in found]
        notes = [
            asked.note,
            self._unapproved.note(asked.query, reach),
            self._states.of_found(tool.definition.server for tool in tools if tool is not None),
            self._states.of_unsearched(reach, is_answered=bool(found)),
        ]
        return "\n".join(filter(None, notes))
