"""The notes below the answer to a search: about servers, and about tools that await approval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.search_arguments import SearchArguments
from toolsearch.gateway.exposure.server_states import ServerStateNotes
from toolsearch.gateway.exposure.unapproved import UnapprovedTools
from toolsearch.gateway.registry import Registry
from toolsearch.upstreams.interface import UpstreamState


class AnswerNotes:
    """Writes the notes. Safe to share between threads. Nothing out of the caller's reach is mentioned."""

    def __init__(self, states: Callable[[], Mapping[str, UpstreamState]], registry: Registry, rules: Reach) -> None:
        self._registry = registry
        self._states = ServerStateNotes(states, registry, rules)
        self._unapproved = UnapprovedTools(registry)

    def of(self, asked: SearchArguments, answers: Sequence[AnsweredQuery], reach: Reach) -> str:
        """The notes on the *answers* to *asked* by a caller with *reach*, one a line; "" if there are none."""
        found = dict.fromkeys(tool.name for answer in answers for tool in answer.tools)
        tools = [self._registry.find(name) for name in found]
        notes = [
            asked.note,
            *(self._unapproved.note(search.query, reach) for search in asked.searches),
            self._states.of_found(tool.definition.server for tool in tools if tool is not None),
            self._states.of_unsearched(reach, is_answered=bool(found)),
        ]
        return "\n".join(filter(None, notes))
