"""The parts of an engine that its sessions need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.shown import ShownDefinitions
from toolsearch.discovery.view import View
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.store import SessionStore
from toolsearch.sessions.usage import UsageLog
from toolsearch.sessions.usage_evidence import Vocabulary
from toolsearch.telemetry import Telemetry
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import FOUND_KINDS, EntryKind, ToolReference
from toolsearch_indexes.queries import Ranking, Strategy


class ConversationHost(Protocol):
    """The parts of an engine that a conversation needs."""

    clock: Callable[[], float]  # seconds since the epoch

    @property
    def catalog(self) -> Catalog: ...
    @property
    def sessions(self) -> SessionStore: ...
    @property
    def options(self) -> SessionOptions: ...
    @property
    def counter(self) -> TokenCounter: ...
    @property
    def definitions(self) -> ShownDefinitions: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def usage(self) -> UsageLog | None: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def strategies(self) -> tuple[Ranking, ...]:
        """The strategies that a search can name, the default first."""
        ...

    def view(self, reach: Reach, server: str | None = None) -> View: ...

    def note(self, note: str) -> None:
        """Tell the operator once; a repeated note is dropped."""
        ...

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: Strategy | None,
        reach: Reach | None,
        server: str | None,
        principal: Principal | None,
        kinds: Collection[EntryKind] = FOUND_KINDS,
    ) -> list[ToolReference]: ...


def note_found(
    host: ConversationHost,
    principal: Principal,
    session_id: str,
    query: str,
    strategy: Strategy | None,
    found: Sequence[ToolReference],
) -> None:
    """Remember the *found* tools of a search, if the engine learns from use, until the session calls one of them."""
    if host.usage and (strategy or host.strategies[0]) != "regex":
        terms = host.vocabulary.terms_of(query)
        host.usage.discovered(principal.id, session_id, terms, [reference.name for reference in found])
