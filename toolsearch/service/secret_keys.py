"""Where the secret keys of a service come from: the environment, a file, or a file that the first start makes."""

from __future__ import annotations

import base64
import binascii
import logging
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolsearch.environment import SECRET_KEY, SECRET_KEY_FILE
from toolsearch.errors import BadSettingError, RecordConflictError, SealError, StorageError
from toolsearch.service.seal import Seal, new_key
from toolsearch.storage.private_files import has_modes, write_private
from toolsearch.storage.records import THE_SERVICE, RecordStore
from toolsearch.tools.json_types import JsonObject

KEY_FILE: Final = "secret.key"  # in the folder of the data
PROOF: Final = "seal"  # kind and id of a record which only the right key opens

_KEY_BYTES: Final = 32
_HOW: Final = "make one with 'openssl rand -base64 32'"

logger = logging.getLogger(__name__)


def open_seal(environ: Mapping[str, str], folder: Path, records: RecordStore, *, clock: Callable[[], float]) -> Seal:
    """The seal of the data in *folder*, with the keys that *environ* or the file of keys gives.

    The first start makes the file if there are none. Of services that start at once over one store, with keys that
    differ, one starts. Raises BadSettingError for what is no key, SealError if the data were sealed with a key that is
    not among them, and StorageError if the data are gone and only the key that was made for them is left.
    """
    seal = checked_seal(environ, folder, records, clock=clock)
    if seal is None:
        return _first_seal(folder / KEY_FILE, records, clock)
    _prove(seal, records, clock)
    return seal


def checked_seal(
    environ: Mapping[str, str], folder: Path, records: RecordStore, *, clock: Callable[[], float]
) -> Seal | None:
    """As `open_seal`, but nothing is written; None if the first start has yet to make a key."""
    proof = _proof(records, clock)
    keys = _given(environ, folder)
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
    """For a store with nothing in it. Raises StorageError if an earlier start has made a secret key in *folder*."""
    file = folder / KEY_FILE
    if file.exists() and not environ.get(SECRET_KEY) and not environ.get(SECRET_KEY_FILE):
        raise StorageError(
            f"there is the secret key {file}, but nothing in the store: what was kept is gone, or elsewhere. To go on, "
            "move the empty store away, if there is one, and run 'toolsearch restore' with a backup, or name the right "
            "place by --data or --store. To begin anew without it all, move the secret key away"
        )


def _proof(records: RecordStore, clock: Callable[[], float]) -> str | None:
    record = records.get(THE_SERVICE, PROOF, PROOF, at_s=clock())
    return None if record is None else str(record.document.get("sealed"))


def _prove(seal: Seal, records: RecordStore, clock: Callable[[], float]) -> None:
    """Write down what only the keys of *seal* open, unless there is such a thing; then they have to open that."""
    if _proof(records, clock) is None:
        document: JsonObject = {"sealed": seal.seal(PROOF)}
        with suppress(RecordConflictError):  # another start was faster
            records.put(THE_SERVICE, PROOF, PROOF, document, over=0, at_s=clock())
    seal.open(_proof(records, clock) or "")


def _first_seal(file: Path, records: RecordStore, clock: Callable[[], float]) -> Seal:
    """A seal with a new key, which is in its file before anything can be sealed with it."""
    key = new_key()
    seal = Seal([key])
    write_private(file, base64.b64encode(key) + b"\n")
    try:
        _prove(seal, records, clock)
    except SealError:  # another start was faster, so this key is for nothing
        file.unlink()
        raise
    logger.warning(
        "made a secret key for the credentials of upstream servers: %s; keep a copy of it apart from backups of the "
        "data, which cannot be opened without it",
        file,
    )
    return seal


def _given(environ: Mapping[str, str], folder: Path) -> list[bytes] | None:
    if text := environ.get(SECRET_KEY):
        return _keys(text.replace(",", " "), SECRET_KEY)
    if named := environ.get(SECRET_KEY_FILE):
        return _keys(_read(Path(named)), named)
    made = folder / KEY_FILE
    return _keys(_read(made), str(made)) if made.exists() else None


def _keys(text: str, where: str) -> list[bytes]:
    words = text.split()
    keys = [_key(word) for word in words]
    if not keys:
        raise BadSettingError(f"there is no secret key in {where}; {_HOW}")
    for number, key in enumerate(keys, start=1):
        if len(key) != _KEY_BYTES:
            raise BadSettingError(f"secret key {number} of {len(keys)} in {where} is not 32 bytes in base64; {_HOW}")
    return keys


def _key(word: str) -> bytes:
    """What the word stands for in either alphabet of base64; nothing if it is none."""
    try:
        return base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _read(path: Path) -> str:
    try:
        if has_modes() and stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            logger.warning("others than its owner may use the secret keys in %s; run 'chmod 600' on it", path)
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise BadSettingError(f"the secret keys in {path} cannot be read: {error.strerror}") from error
