"""Proves that a service has the keys with which its data were sealed, and seals all of it anew with another key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.environment import SECRET_KEY, SECRET_KEY_FILE
from toolsearch.errors import ConflictError, SealError, StorageError
from toolsearch.storage.files import write_private
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore
from toolsearch.storage.seal import KEY_FILE, Seal, is_sealed, key_text, keys_for, new_key
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import Json, JsonObject

_PROOF: Final = "seal"  # kind and id of a record that only the right key opens
logger = logging.getLogger(__name__)


def open_seal(environ: Mapping[str, str], folder: Path, records: RecordStore, *, clock: Callable[[], float]) -> Seal:
    """The seal of the data in *folder*, with the keys that *environ* or the file of keys gives.

    The first start makes the file if there are no keys. If several services start at once over one store with different
    keys, only one of them starts. Raises BadSettingError for an invalid key, SealError if the data were sealed with
    another key, and StorageError if the data are gone and only their key is left.
    """
    seal = checked_seal(environ, folder, records, clock=clock)
    if seal is None:
        return _first_seal(folder / KEY_FILE, records, clock)
    _prove(seal, records, clock)
    return seal


def checked_seal(
    environ: Mapping[str, str], folder: Path, records: RecordStore, *, clock: Callable[[], float]
) -> Seal | None:
    """As `open_seal`, but without writing. None if the first start has still to make a key."""
    proof = _proof(records, clock)
    keys = keys_for(environ, folder)
    if keys is None:
        if proof is not None:
            raise SealError
        return None
    seal = Seal(keys)
    if proof is not None:
        seal.open(proof)
    elif not records.scan(limit=1):
        refuse_new_start(environ, folder)
    return seal


def refuse_new_start(environ: Mapping[str, str], folder: Path) -> None:
    """Call it for an empty store. Raises StorageError if an earlier start has made a secret key in *folder*."""
    file = folder / KEY_FILE
    if file.exists() and not environ.get(SECRET_KEY) and not environ.get(SECRET_KEY_FILE):
        raise StorageError(
            f"the secret key {file} exists, but the store is empty: the data is gone or elsewhere. To go on, "
            "move the empty store away and run 'toolsearch restore' with a backup, or name the right place by --data "
            "or --store. To begin anew without the data, move the secret key away"
        )


def _proof(records: RecordStore, clock: Callable[[], float]) -> str | None:
    record = records.get(THE_SERVICE, _PROOF, _PROOF, at_s=clock())
    return None if record is None else str(record.document.get("sealed"))


def _prove(seal: Seal, records: RecordStore, clock: Callable[[], float]) -> None:
    """Write a record that only the keys of *seal* open. If there is one already, they must open it."""
    if _proof(records, clock) is None:
        document: JsonObject = {"sealed": seal.seal(_PROOF)}
        with suppress(ConflictError):  # another start was faster
            records.put(THE_SERVICE, _PROOF, _PROOF, document, over=0, at_s=clock())
    seal.open(_proof(records, clock) or "")


def _first_seal(file: Path, records: RecordStore, clock: Callable[[], float]) -> Seal:
    """A seal with a new key. The key is in its file before anything can be sealed with it."""
    key = new_key()
    seal = Seal([key])
    write_private(file, key_text(key))
    try:
        _prove(seal, records, clock)
    except SealError:  # another start was faster, so this key is useless
        file.unlink()
        raise
    logger.warning(
        "made a secret key for the credentials of upstream servers: %s; keep a copy apart from the backups: they "
        "cannot be opened without it",
        file,
    )
    return seal


_BATCH: Final = 100
_BEFORE_ANY_S: Final = 0.0  # a time at which no record has expired


@dataclass(frozen=True, slots=True)
class Resealed:
    """The number of texts that were sealed anew, and of texts that no key can open."""

    texts: int
    unreadable: int


def reseal_all(storage: Storage, seal: Seal) -> Resealed:
    """Seal all texts anew. Services with the same keys may run: their writes meanwhile stay. Texts that cannot be
    opened stay, too.
    """
    texts = unreadable = 0
    after = ("", "", "")
    while found := storage.records.scan(after=after, limit=_BATCH):
        for tenant, of_tenant in groupby(found, itemgetter(0)):
            with storage.transaction():  # one tenant in each transaction, since it holds up the tenant's other writes
                for _, kind, record in of_tenant:
                    work = _reseal(storage.records, seal, tenant, kind, record)
                    texts, unreadable = texts + work.texts, unreadable + work.unreadable
        tenant, kind, record = found[-1]
        after = (tenant, kind, record.id)
    return Resealed(texts, unreadable)


def forget_lost_key(storage: Storage) -> None:
    """Let the next start use another key. Data sealed before must be given again."""
    storage.records.delete(THE_SERVICE, _PROOF, _PROOF)


def _reseal(records: RecordStore, seal: Seal, tenant: str, kind: str, record: Record) -> _Work:
    """Seal the record anew; try again if somebody has changed it meanwhile."""
    found: Record | None = record
    while found is not None:
        work = _Work(seal)
        document = {name: work.on(value) for name, value in found.document.items()}
        if not work.texts:
            return work
        try:
            records.put(
                tenant,
                kind,
                found.id,
                document,
                over=found.version,
                at_s=found.changed_s,
                expires_s=found.expires_s,
            )
        except ConflictError:
            found = records.get(tenant, kind, record.id, at_s=_BEFORE_ANY_S)
        else:
            return work
    return _Work(seal)  # the record was deleted


class _Work:
    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self.texts = 0
        self.unreadable = 0

    def on(self, value: Json) -> Json:
        """*value*, with every sealed text in it sealed anew."""
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
