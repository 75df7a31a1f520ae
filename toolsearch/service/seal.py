"""Encrypts what must not be readable in the store: credentials of upstream servers, above all."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final, Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from toolsearch.errors import SealError

_START: Final = "sealed:"  # so that a sealed text is known as one wherever it is kept
_DERIVED_BYTES: Final = 32


def is_sealed(text: str) -> bool:
    return text.startswith(_START)


class Seal:
    """Encrypts with the first of *keys*, and opens what was sealed with any of them. A key is 32 bytes.

    Whoever changes a sealed text makes it unreadable (Fernet: AES-128 in CBC mode, and HMAC-SHA256).
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = tuple(keys)
        self._fernet = MultiFernet([Fernet(_urlsafe(key)) for key in keys])

    @classmethod
    def until_restart(cls) -> Self:
        """One that nothing can be opened with once the process has ended: for tests."""
        return cls([new_key()])

    def seal(self, text: str) -> str:
        return _START + self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """Raises SealError, which tells nothing of the text or of a key."""
        try:
            return self._fernet.decrypt(sealed.removeprefix(_START)).decode()
        except InvalidToken:
            raise SealError from None

    def reseal(self, sealed: str) -> str:
        """The same text, sealed with the first key. Raises SealError."""
        return self.seal(self.open(sealed))

    def derived(self, purpose: str) -> tuple[bytes, ...]:
        """Keys of 32 bytes for another purpose, such as signing: use the first, and accept what the others made."""
        return tuple(HKDF(hashes.SHA256(), _DERIVED_BYTES, None, purpose.encode()).derive(key) for key in self._keys)


def new_key() -> bytes:
    return base64.urlsafe_b64decode(Fernet.generate_key())


def _urlsafe(key: bytes) -> bytes:
    return base64.urlsafe_b64encode(key)
