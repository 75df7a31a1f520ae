"""Findings about hidden load: text that shows only when it is decoded, and more text than anybody reads."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.texts import Text, evidence

_re2: Any = untyped_re2

_MAX_TEXT_CHARACTERS = 20_000
_MAX_UNPACKED_CHARACTERS = 65_536  # decoded of one text
_FEWEST_WORDS = 4  # words that decoded data has to have to count as text


def _from_base64(packed: bytes) -> bytes:
    body = packed.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    body = body[: len(body) // 4 * 4]  # a tail that is cut off hides nothing
    return base64.b64decode(body)


_PACKINGS: tuple[tuple[Any, Callable[[bytes], bytes]], ...] = (
    (_re2.compile(r"(?:[0-9a-fA-F]{2}){20,}"), lambda packed: binascii.unhexlify(packed[: len(packed) // 2 * 2])),
    (_re2.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}"), _from_base64),
    (_re2.compile(r"(?:%[0-9a-fA-F]{2}){16,}"), unquote_to_bytes),
)


def packed_text(text: Text) -> Iterator[Finding]:
    """The first run of base64, hex or percent codes that unpacks to words."""
    as_bytes = text.value[:_MAX_UNPACKED_CHARACTERS].encode(errors="replace")
    for expression, unpack in _PACKINGS:
        for match in expression.finditer(as_bytes):
            words = _words(unpack, match.group())
            if words:
                yield Finding("packed-text", text.place, evidence(words))
                return


def too_long(text: Text) -> Iterator[Finding]:
    """More than anybody would read, so that anything could be in it."""
    if len(text.value) > _MAX_TEXT_CHARACTERS:
        yield Finding("too-long", text.place, f"{len(text.value)} characters: {evidence(text.value, 0, 40)}")


def _words(unpack: Callable[[bytes], bytes], packed: bytes) -> str:
    """What *packed* says, or "" if it says nothing."""
    try:
        words = unpack(packed).decode()
    except ValueError:  # the base class of the errors of binascii and of decoding
        return ""
    readable = all(character.isprintable() or character.isspace() for character in words)
    return words if readable and len(words.split()) >= _FEWEST_WORDS else ""
