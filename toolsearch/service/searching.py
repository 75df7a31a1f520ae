"""Searches without a session: several queries at once, names to be looked up, and why a tool is found or not.

Everything here computes, so it runs in a thread for searches: one for all of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadPatternError, BadQueryError
from toolsearch.tools.definition import ToolReference
from toolsearch.tools.summaries import reference_to
from toolsearch.wire.formats import WireFormat, render_definition
from toolsearch_indexes.explanation import Explanation
from toolsearch_indexes.strategies import Strategy


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for. *reach* narrows what its caller reaches; the other fields are as in `SearchRequest`."""

    queries: Sequence[str]
    names: Sequence[str] = ()
    strategy: Strategy | None = None
    limit: int = 5
    server: str | None = None
    reach: Reach = Reach()  # noqa: RUF009  frozen
    definitions: WireFormat | None = None
    explain: bool = False
    explain_tools: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    query: str
    found: Sequence[ToolReference] = ()
    explanations: Sequence[Explanation] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """*named* and *not_found* are those of the names; *definitions* are by name, of everything that is answered."""

    queries: Sequence[AnsweredQuery]
    named: Sequence[ToolReference]
    not_found: Sequence[str]
    definitions: dict[str, dict[str, Any]]


def answer(engine: ToolSearch, principal: Principal, asked: Asked) -> Answered:
    """Answer all that is asked. One of several queries that cannot be searched for does not spoil the others.

    Raises BadQueryError or BadPatternError for a single query, and for a server that is not in reach.
    """
    view = engine.view(asked.reach & principal.reach)
    search = _Search(engine, principal, asked)
    queries = [search.answered(query, may_fail=len(asked.queries) == 1) for query in asked.queries]
    tools = {name: view.find(name) for name in dict.fromkeys(asked.names)}
    named = [reference_to(tool) for tool in tools.values() if tool is not None]
    shown = dict.fromkeys(each.name for each in (*(found for query in queries for found in query.found), *named))
    return Answered(
        queries,
        named,
        [name for name, tool in tools.items() if tool is None],
        _definitions(view, shown, asked.definitions) if asked.definitions is not None else {},
    )


@dataclass(frozen=True, slots=True)
class _Search:
    engine: ToolSearch
    principal: Principal
    asked: Asked

    def answered(self, query: str, *, may_fail: bool) -> AnsweredQuery:
        try:
            return self._answered(query)
        except (BadQueryError, BadPatternError) as error:
            if may_fail:
                raise
            return AnsweredQuery(query, error=str(error))

    def _answered(self, query: str) -> AnsweredQuery:
        asked = self.asked
        found = self.engine.search(
            query,
            limit=asked.limit,
            strategy=asked.strategy,
            reach=asked.reach,
            server=asked.server,
            principal=self.principal,
        )
        explained = [*(each.name for each in found if asked.explain), *asked.explain_tools]
        return AnsweredQuery(query, found, [self._explained(query, name) for name in dict.fromkeys(explained)])

    def _explained(self, query: str, name: str) -> Explanation:
        asked = self.asked
        return self.engine.explain(
            query,
            name,
            strategy=asked.strategy,
            reach=asked.reach,
            server=asked.server,
            principal=self.principal,
        )


def _definitions(view: View, names: Sequence[str] | dict[str, None], wire_format: WireFormat) -> dict[str, Any]:
    found = {name: view.find(name) for name in names}
    return {name: render_definition(tool.definition, wire_format) for name, tool in found.items() if tool is not None}
