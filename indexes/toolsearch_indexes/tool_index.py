"""The interface for an index of your own: what an engine needs, whatever the index searches with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from toolsearch_indexes.documents import Explanation, Hit, ToolDocument
from toolsearch_indexes.queries import Ranking, Selection, Strategy


class ToolIndex(Protocol):
    """A searchable set of tools. Safe to share between threads: searches run while one thread changes it.

    An engine keeps it in step with its catalog, and applies reach to the hits once more. So an index that cannot filter
    before it ranks finds too few tools, never forbidden ones.
    """

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """Its rankings, among hybrid, semantic, keyword and regex. "auto" means the first."""
        ...

    def resolve_strategy(self, strategy: str) -> Ranking:
        """Return the ranking that *strategy* means. Raises BadQueryError if it is not one of `rankings`."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all tools that it holds."""
        ...

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        """Remove *remove*, then add *add*, which replace tools of the same names. Unknown names are ignored.

        The changes are searchable once it has returned. If it raises, nothing has changed, and the next call includes
        the same changes again.
        """
        ...

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: Strategy = "auto",
        within: Selection | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> list[Hit]:
        """Return at most *limit* hits, best first, equal scores by name; scores lie in (0, 1].

        *within* says which tools may be found; None means all. *favour*, in [0, 1] by name, is learnt from use, and may
        be ignored. A hit without a confidence counts as weak: the model gets its name without its parameters. A query
        that fits no tool gives ``[]``. Raises BadQueryError for a query that cannot be searched for.
        """
        ...


@runtime_checkable
class ExplainsSearches(Protocol):
    """An index that can say why it finds a tool, or does not."""

    def explain(
        self,
        query: str,
        name: str,
        *,
        strategy: Strategy = "auto",
        within: Selection | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> Explanation:
        """Explain the result of a search with the same arguments for the tool *name*."""
        ...
