"""The notes below the answer to a search: about servers, and about tools that await approval."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.search_arguments import SearchArguments
from toolsearch.errors import BadQueryError
from toolsearch.gateway.exposure.server_states import ServerStateNotes, Statuses
from toolsearch.gateway.exposure.unapproved import UnapprovedTools
from toolsearch.gateway.registry import Registry


class AnswerNotes:
    """Writes the notes. Safe to share between threads. Nothing out of the caller's reach is mentioned."""

    def __init__(self, statuses: Statuses, registry: Registry, rules: Reach, unapproved: UnapprovedTools) -> None:
        self._registry = registry
        self._states = ServerStateNotes(statuses, registry, rules)
        self._unapproved = unapproved

    def require_searchable(self, server: str, reach: Reach) -> None:
        """Raise BadQueryError, with the reason, for a server in *reach* none of whose tools can be searched now.

        None of its tools may be in the view of the caller. Of a server that does not exist nothing is said here.
        """
        if server in self._unapproved.servers(reach):
            raise BadQueryError(self._unapproved.of_server(server))
        if reason := self._states.why_unsearchable(server, reach):
            raise BadQueryError(reason)

    def of(self, asked: SearchArguments, answers: Sequence[AnsweredQuery], reach: Reach) -> str:
        """The notes on the *answers* to *asked* by a caller with *reach*, one a line; "" if there are none."""
        found = dict.fromkeys(tool.name for answer in answers for tool in answer.tools)
        tools = [self._registry.find(name) for name in found]
        notes = [
            asked.note,
            *(self._unapproved.note(search.query, reach) for search in asked.searches),
            self._states.of_found(tool.definition.server for tool in tools if tool is not None),
            self._states.of_unsearched(reach, is_answered=bool(found)),
            "" if any(each.finding == "fits" for each in answers) else self._unapproved.note_of_servers(reach),
        ]
        return "\n".join(filter(None, notes))
