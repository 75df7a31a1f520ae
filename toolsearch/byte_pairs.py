"""Counts the tokens of OpenAI's o200k_base. It takes 6 MB, where tiktoken takes 80, and is as fast on texts of tools.

A text is cut into pieces. The bytes of each piece are merged, two neighbours at a time, lowest rank first. Only the
number of tokens is needed. So the ranks are in one table, and the counts of the last pieces are cached.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from binascii import a2b_base64
from collections import Counter
from functools import lru_cache
from heapq import heapify, heappop, heappush
from io import BytesIO
from zlib import crc32

_SLOTS = 2**19  # sparse for 200,000 ranks, so that most lookups need one step
_KNOWN_PIECES = 16_384
_LONGEST_CACHED = 64  # characters; longer pieces hardly ever repeat
_LONGEST_MERGED = 2_048  # characters of a piece that are merged at a time; tools have no words or numbers so long

# The pattern below reads a text in which one character stands for its whole class. The pattern contains none of these
# characters literally.
_STAND_INS = {
    **dict.fromkeys(("Lu", "Lt"), "B"),
    "Ll": "b",
    **dict.fromkeys(("Lm", "Lo"), "\u00aa"),
    **dict.fromkeys(("Mn", "Mc", "Me"), "\u0300"),
    **dict.fromkeys(("Nd", "Nl", "No"), "0"),
}
_SPACE, _OTHER = "\v", "!"
_LONG_S = "\u017f"  # a lower-case letter that equals s if case is ignored
_SPACES = frozenset("\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(map(chr, range(0x2000, 0x200B)))

_UPPER, _LOWER = r"A-Z\u00aa\u0300", r"a-z\u017f\u00aa\u0300"
_LETTER = r"A-Za-z\u017f\u00aa"
_SPACED = r" \t-\r"
_SHORT_FORM = r"(?:'(?:[sS\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
# The pattern by which o200k_base cuts a text into pieces, as OpenAI published it. Any change would change counts.
_PIECES = re.compile(
    "|".join(
        [
            rf"[^\r\n{_LETTER}0-9]?[{_UPPER}]*[{_LOWER}]+{_SHORT_FORM}",
            rf"[^\r\n{_LETTER}0-9]?[{_UPPER}]+[{_LOWER}]*{_SHORT_FORM}",
            r"[0-9]{1,3}",
            rf" ?[^{_SPACED}{_LETTER}0-9]+[\r\n/]*",
            rf"[{_SPACED}]*[\r\n]+",
            rf"[{_SPACED}]+(?![^{_SPACED}])",
            rf"[{_SPACED}]+",
        ]
    )
)


class BytePairs:
    """Safe to share between threads."""

    def __init__(self, ranks: bytes) -> None:
        """*ranks* has lines of ``<base64 of a token's bytes> <rank>``, in the order of ranks, from 0 on."""
        self._ends = array("I", [0])
        self._slots = array("I", bytes(4 * _SLOTS))  # rank + 1 of the token in each slot; 0 means empty
        tokens = bytearray()
        for place, line in enumerate(BytesIO(ranks), 1):
            token = a2b_base64(line.partition(b" ")[0])
            tokens += token
            self._ends.append(len(tokens))
            slot = crc32(token) % _SLOTS
            while self._slots[slot]:
                slot = (slot + 1) % _SLOTS
            self._slots[slot] = place
        self._tokens = bytes(tokens)
        self._known = lru_cache(_KNOWN_PIECES)(self._tokens_in)

    def count(self, text: str) -> int:
        """A lone surrogate counts as the replacement character. In longer pieces, each 2,048 characters may count one
        token too many.
        """
        found = _pieces(text)
        if len(max(found, key=len, default="")) <= _LONGEST_CACHED:
            return sum(map(self._known, found))
        return sum(
            self._known(piece) if len(piece) <= _LONGEST_CACHED else self._tokens_in_long(piece) for piece in found
        )

    def _tokens_in_long(self, piece: str) -> int:
        parts = Counter(piece[start : start + _LONGEST_MERGED] for start in range(0, len(piece), _LONGEST_MERGED))
        return sum(times * self._tokens_in(part) for part, times in parts.items())

    def _tokens_in(self, piece: str) -> int:
        """How many tokens are left of *piece* once no two neighbours have a rank together."""
        data, rank = piece.encode(), self._rank
        if rank(data):
            return 1
        count = size = len(data)
        ends = list(range(1, size + 1))  # start of a token -> its end; 0 means that no token starts here
        before = list(range(-1, size))  # end of a token -> its start
        pairs = [(found, at, at + 2) for at in range(size - 1) if (found := rank(data[at : at + 2]))]
        heapify(pairs)
        while pairs:
            _, start, end = heappop(pairs)
            middle = ends[start]
            if not middle or middle == size or ends[middle] != end:
                continue  # one of the two was merged with another token since
            ends[start], ends[middle] = end, 0
            count -= 1
            if end < size:
                before[end] = start
                if found := rank(data[start : ends[end]]):
                    heappush(pairs, (found, start, ends[end]))
            if start and (found := rank(data[before[start] : end])):
                heappush(pairs, (found, before[start], end))
        return count

    def _rank(self, token: bytes) -> int:
        """The rank of a token, plus 1; 0 if it is not a token."""
        slot = crc32(token) % _SLOTS
        while place := self._slots[slot]:
            if self._tokens[self._ends[place - 1] : self._ends[place]] == token:
                return place
            slot = (slot + 1) % _SLOTS
        return 0


class _Classes(dict[int, str]):
    """Character -> the character that stands for its class; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isascii() or character == _LONG_S:
            standing = character
        else:
            standing = _SPACE if character in _SPACES else _STAND_INS.get(unicodedata.category(character), _OTHER)
        self[code] = standing
        return standing


def _pieces(text: str) -> list[str]:
    if text.isascii():
        return _PIECES.findall(text)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return [text[found.start() : found.end()] for found in _PIECES.finditer(text.translate(_Classes()))]
