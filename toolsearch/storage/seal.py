"""Encrypts secrets, with keys from the environment or from a file in the folder of the data."""

from __future__ import annotations

import base64
import binascii
import logging
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from toolsearch.environment import SECRET_KEY, SECRET_KEY_FILE
from toolsearch.errors import BadSettingError, SealError
from toolsearch.storage.files import has_modes, write_new

_START: Final = "sealed:"  # a prefix by which a sealed text is recognised everywhere
_DERIVED_BYTES: Final = 32


def is_sealed(text: str) -> bool:
    return text.startswith(_START)


class Seal:
    """Encrypts with the first of *keys*, and opens what was sealed with any of them. A key is 32 bytes.

    A sealed text that was changed cannot be opened (Fernet: AES-128 in CBC mode, and HMAC-SHA256).
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = tuple(keys)
        self._fernet = MultiFernet([Fernet(_urlsafe(key)) for key in keys])

    @classmethod
    def until_restart(cls) -> Self:
        """One that opens nothing once the process has ended."""
        return cls([new_key()])

    def seal(self, text: str) -> str:
        return _START + self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """Raises SealError, which reveals nothing of the text or of a key."""
        try:
            return self._fernet.decrypt(sealed.removeprefix(_START)).decode()
        except InvalidToken:
            raise SealError from None

    def reseal(self, sealed: str) -> str:
        """The same text, sealed with the first key. Raises SealError."""
        return self.seal(self.open(sealed))

    def derived(self, purpose: str) -> tuple[bytes, ...]:
        """Keys of 32 bytes for another purpose, such as signing. Use the first, and accept signatures by the others."""
        return tuple(HKDF(hashes.SHA256(), _DERIVED_BYTES, None, purpose.encode()).derive(key) for key in self._keys)


def new_key() -> bytes:
    return base64.urlsafe_b64decode(Fernet.generate_key())


def key_text(key: bytes) -> bytes:
    """The content of a file with *key*."""
    return base64.b64encode(key) + b"\n"


def _urlsafe(key: bytes) -> bytes:
    return base64.urlsafe_b64encode(key)


KEY_FILE: Final = "secret.key"  # a file in the folder of the data
_KEY_BYTES: Final = 32
_HOW: Final = "make one with 'openssl rand -base64 32'"
logger = logging.getLogger(__name__)


def seal_of_folder(environ: Mapping[str, str], folder: Path) -> Seal:
    """The seal of files in *folder*, with the keys that *environ* or the file of keys gives. Without any, the file is
    made. Raises BadSettingError for an invalid key, and for one that cannot be read or made.
    """
    if (keys := keys_for(environ, folder)) is None:
        file = folder / KEY_FILE
        try:
            write_new(file, key_text(new_key()))
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            raise BadSettingError(f"the secret key {file} cannot be made: {error.strerror}") from error
        keys = keys_for(environ, folder) or []
    return Seal(keys)


def keys_for(environ: Mapping[str, str], folder: Path) -> list[bytes] | None:
    """The keys that *environ* or the file in *folder* gives; None if there are none. Raises BadSettingError."""
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
    """The bytes of the word in either alphabet of base64; empty if it is not base64."""
    try:
        return base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _read(path: Path) -> str:
    try:
        if has_modes() and stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            logger.warning("other users may read the secret keys in %s; run 'chmod 600' on it", path)
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise BadSettingError(f"the secret keys in {path} cannot be read: {error.strerror}") from error
