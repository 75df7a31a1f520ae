"""The seam for an index of your own: what an engine needs of it, whatever it searches with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.explanation import Explanation
from toolsearch_indexes.queries import Ranking, Selection, Strategy


class ToolIndex(Protocol):
    """A searchable set of tools. Safe to share between threads: searches run while one thread changes it.

    An engine keeps it to what the engine's catalog holds. It applies reach to the hits once more, so that an index that
    cannot filter before it ranks finds too little, never too much.
    """

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """What it can rank by, of hybrid, semantic, keyword and regex; the first is what "auto" means."""
        ...

    def resolve_strategy(self, strategy: str) -> Ranking:
        """Return the one of `rankings` that *strategy* means. Raises BadQueryError for one that it cannot rank by."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all tools that it holds."""
        ...

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        """Take out *remove*, then put in *add*, in place of tools of the same names; unknown names are ignored.

        What it does is searchable once it has returned. If it raises, nothing has changed, and the same is given again
        with the next change.
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

        *within* says which tools may be found; None means all. *favour*, in [0, 1] by name, is what use has shown, and
        may be ignored. A hit without a confidence counts as weak: the model is told its name, and not its parameters.
        What fits nothing gives ``[]``. Raises BadQueryError for a query that cannot be searched for.
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
        """Explain what a search with the same arguments makes of the tool *name*."""
        ...
