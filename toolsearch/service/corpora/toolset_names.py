"""Whose tools have which names in a toolset, as replicas agree on it: who gives a name first has given it for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from toolsearch.errors import RecordConflictError, UnknownRecordError
from toolsearch.service.corpora.versions import NAMES
from toolsearch.service.toolset_specs import TOOLSET
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage

Holders: TypeAlias = Mapping[str, str]  # by name, the catalog of each tool that a rule has taken in

_ATTEMPTS: Final = 10  # other replicas give names meanwhile


@dataclass(frozen=True, slots=True)
class KeptNames:
    """*number* is that of the version of the toolset for which the names were given; 0: none was."""

    number: int = 0
    holders: Holders = field(default_factory=dict[str, str])


class ToolsetNames:
    """The record of one toolset. *clock* gives seconds since 1970. `version` is that of the record that was read or
    written last.
    """

    def __init__(self, storage: Storage, tenant: str, toolset: str, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._of = tenant, NAMES, toolset
        self._toolset = tenant, TOOLSET, toolset
        self._clock = clock
        self.version = 0

    def read(self) -> KeptNames:
        return self._read()[0]

    def keep(self, number: int, holders: Holders) -> Holders:
        """Keep *holders* for the version *number* of the toolset, and return what counts: what others kept first.

        Nothing is kept of a toolset that is deleted meanwhile. Raises RecordConflictError if others never stop writing.
        """
        for _ in range(_ATTEMPTS):
            kept, version = self._read()
            agreed = dict(holders)
            if kept.number >= number:
                agreed = {**agreed, **kept.holders} if kept.number == number else dict(kept.holders)
            if kept.number > number or (kept.number == number and agreed == kept.holders):
                return agreed
            try:
                self._write(KeptNames(number, agreed), over=version)
            except RecordConflictError:
                continue
            except UnknownRecordError:
                pass
            return agreed
        raise RecordConflictError(NAMES, self._of[2])

    def _read(self) -> tuple[KeptNames, int]:
        record = self._storage.records.get(*self._of, at_s=self._clock())
        self.version = record.version if record else 0
        return _kept(record), self.version

    def _write(self, names: KeptNames, *, over: int) -> None:
        document: dict[str, Any] = {"number": names.number, "holders": dict(names.holders)}
        with self._storage.transaction():
            record = self._storage.records.put(*self._of, document, over=over, at_s=self._clock())
            if self._storage.records.get(*self._toolset, at_s=self._clock()) is None:
                raise UnknownRecordError(*self._toolset[1:])
        self.version = record.version


def _kept(record: Record | None) -> KeptNames:
    if record is None:
        return KeptNames()
    document: Any = record.document
    return KeptNames(document.get("number", 0), dict(document["holders"]))
