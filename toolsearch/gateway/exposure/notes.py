"""The notes below the answer to a search about tools that await approval."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.errors import BadQueryError
from toolsearch.gateway.registry import Registry
from toolsearch.tools.definition import FOUND_KINDS
from toolsearch_indexes.queries import Select, Words, name_candidates, read_form


class AnswerNotes:
    """Writes the notes. Safe to share between threads. What is out of the caller's reach is not mentioned."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def require_approved(self, server: str, reach: Reach) -> None:
        """Raise BadQueryError if *server* has tools or skills in *reach* that await approval.

        To be called for a server with nothing in the caller's view. An unknown server passes.
        """
        if server in self._held_servers(reach):
            how = self._registry.approving(server)
            raise BadQueryError(f"the tools of the server {server} wait for a person to approve them {how}")

    def of(self, asked: SearchArguments, answers: Sequence[AnsweredQuery], reach: Reach) -> str:
        """The notes on the *answers* to *asked* by a caller with *reach*, one a line; "" if there are none."""
        notes = [
            *(self._of_held(search.query, reach) for search in asked.searches),
            "" if any(each.finding == "fits" for each in answers) else self._of_held_servers(reach),
        ]
        return "\n".join(filter(None, notes))

    def _of_held(self, query: str, reach: Reach) -> str:
        """One line for each entry that awaits approval and that *query* names exactly, with or without its server in
        front.
        """
        match read_form(query):
            case Select(names):
                asked = names
            case Words(text):
                asked = (text,)
            case _:
                return ""
        meant = {candidate for name in asked for candidate in name_candidates(name)}
        held = [tool for tool in self._registry.held_within(reach) if tool.name.casefold() in meant]
        return "\n".join(f"{self._registry.unapproved(tool)}." for tool in held)

    def _held_servers(self, reach: Reach) -> list[str]:
        """The servers with tools or skills in *reach* that await approval, sorted."""
        held = (tool.definition for tool in self._registry.held_within(reach))
        return sorted({each.server for each in held if each.kind in FOUND_KINDS} - {""})

    def _of_held_servers(self, reach: Reach) -> str:
        """Name the servers whose tools a search skipped because they await approval; "" for none."""
        servers, how = self._held_servers(reach), self._registry.approving("")
        told = f"Not searched, since a person has to approve them {how}: tools of {', '.join(servers)}."
        return told if servers else ""
