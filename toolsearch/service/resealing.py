"""Seals everything in the store anew with the first key, so that older ones can be thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import SealError
from toolsearch.service.seal import Seal, is_sealed
from toolsearch.service.secret_keys import PROOF
from toolsearch.storage.records import THE_SERVICE
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import Json

_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many texts were sealed anew, and how many cannot be opened by any key."""

    texts: int
    unreadable: int


def reseal_all(storage: Storage, seal: Seal) -> Resealed:
    """Also while a service runs that has the same keys. What cannot be opened stays as it is.

    All sealed texts are in records; this has to look elsewhere as well once that changes.
    """
    texts = unreadable = 0
    after = ("", "", "")
    while True:
        with storage.transaction():
            found = storage.records.scan(after=after, limit=_BATCH)
            for tenant, kind, record in found:
                work = _Work(seal)
                document = {name: work.on(value) for name, value in record.document.items()}
                if work.texts:
                    storage.records.put(
                        *(tenant, kind, record.id, document),
                        over=None,
                        at_s=record.changed_s,
                        expires_s=record.expires_s,
                    )
                texts, unreadable = texts + work.texts, unreadable + work.unreadable
        if not found:
            return Resealed(texts, unreadable)
        tenant, kind, record = found[-1]
        after = (tenant, kind, record.id)


def forget_lost_key(storage: Storage) -> None:
    """Let the next start go on with another key. What was sealed before has to be given anew."""
    storage.records.delete(THE_SERVICE, PROOF, PROOF)


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
