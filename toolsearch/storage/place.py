"""What can be done with the database of a service as a whole, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from toolsearch.storage.copying import OnProgress
from toolsearch.storage.storage import Storage


class State(NamedTuple):
    """What was found without a change.

    is_current  whether a start leaves the tables as they are; False if it has yet to make them
    notes       more that an operator wants to know: what it is about, and what was found
    warnings    the same, of what should be changed
    """

    text: str
    is_current: bool
    notes: Sequence[tuple[str, str]] = ()
    warnings: Sequence[tuple[str, str]] = ()


class StorePlace(Protocol):
    """Each method may raise StorageError, with nothing of a password in it."""

    @property
    def name(self) -> str:
        """How people know it."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether services with folders of their own may use it at once."""
        ...

    def is_new(self) -> bool:
        """Whether no service has made its tables there yet."""
        ...

    def require(self) -> None:
        """Raises StorageError unless a service has kept something there."""
        ...

    def open(self) -> Storage:
        """Its tables are made, or brought up to date."""
        ...

    def look(self) -> State:
        """Change nothing. Raises StorageError for what a start would end with."""
        ...

    def back_up(self, to: Path, on_progress: OnProgress) -> None:
        """Copy everything, as of one moment, to the new SQLite file *to*, complete or not at all."""
        ...

    def restore(self, backup: Path, on_progress: OnProgress) -> None:
        """Put in everything that the file has, all or nothing. Refused if anything is there."""
        ...
