"""Which tools a search may see."""

from __future__ import annotations

from collections.abc import Callable, Collection

from toolsearch_indexes.errors import BadQueryError


class Selection:
    """The tools whose names *allows* accepts.

    An index remembers what it finds out about a selection as long as the selection lives, and at a change asks for the
    new tools only; *allows* must therefore always answer the same for one version of a tool. Make one selection per
    reach and share it. Safe to share between threads.
    """

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self.allows = allows

    @classmethod
    def of(cls, names: Collection[str]) -> Selection:
        """Raises BadQueryError for a bare text, whose letters would be the names."""
        if isinstance(names, str | bytes):
            raise BadQueryError(f"within must be a collection of names, not one text; write [{names[:80]!r}]")
        return cls(frozenset(names).__contains__)
