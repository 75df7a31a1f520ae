"""Seals everything in the store anew with the first key, so that older ones can be thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import RecordConflictError, SealError
from toolsearch.service.seal import Seal, is_sealed
from toolsearch.service.secret_keys import PROOF
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import Json

_BATCH: Final = 100
_BEFORE_ANY_S: Final = 0.0  # a time at which no record has expired


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many texts were sealed anew, and how many cannot be opened by any key."""

    texts: int
    unreadable: int


def reseal_all(storage: Storage, seal: Seal) -> Resealed:
    """Also while services run that have the same keys: what they write meanwhile stays. So does what cannot be opened.

    All sealed texts are in records; this has to look elsewhere as well once that changes.
    """
    texts = unreadable = 0
    after = ("", "", "")
    while found := storage.records.scan(after=after, limit=_BATCH):
        for tenant, of_tenant in groupby(found, itemgetter(0)):
            with storage.transaction():  # of one tenant, as each holds up what others write for the tenant
                for _, kind, record in of_tenant:
                    work = _reseal(storage.records, seal, tenant, kind, record)
                    texts, unreadable = texts + work.texts, unreadable + work.unreadable
        tenant, kind, record = found[-1]
        after = (tenant, kind, record.id)
    return Resealed(texts, unreadable)


def forget_lost_key(storage: Storage) -> None:
    """Let the next start go on with another key. What was sealed before has to be given anew."""
    storage.records.delete(THE_SERVICE, PROOF, PROOF)


def _reseal(records: RecordStore, seal: Seal, tenant: str, kind: str, record: Record) -> _Work:
    """Once more, if somebody has changed the record since it was read, until nobody has."""
    found: Record | None = record
    while found is not None:
        work = _Work(seal)
        document = {name: work.on(value) for name, value in found.document.items()}
        if not work.texts:
            return work
        try:
            records.put(
                *(tenant, kind, found.id, document),
                over=found.version,
                at_s=found.changed_s,
                expires_s=found.expires_s,
            )
        except RecordConflictError:
            found = records.get(tenant, kind, record.id, at_s=_BEFORE_ANY_S)
        else:
            return work
    return _Work(seal)  # it was deleted


class _Work:
    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self.texts = 0
        self.unreadable = 0

    def on(self, value: Json) -> Json:
        """*value* with every sealed text in it sealed anew."""
        if isinstance(value, str) and is_sealed(value):
            return self._resealed(value)
        if is_list(value):
            return [self.on(each) for each in value]
        if is_object(value):
            return {name: self.on(each) for name, each in value.items()}
        return value

    def _resealed(self, text: str) -> str:
        try:
            resealed = self._seal.reseal(text)
        except SealError:
            self.unreadable += 1
            return text
        self.texts += 1
        return resealed
