"""The texts of a definition, each with its place: as written, and as a reader or a model understands them.

A finding is what a rule reports about one text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.definitions import PICTURES

_EVIDENCE_CHARACTERS = 80
_CONTEXT_CHARACTERS = 16


# Letters of other scripts that look like Latin ones, after NFKC and in lower case. Other letters stay unchanged.
_LOOKS_LIKE: Final = str.maketrans(
    dict(
        zip(
            "авсԁеѕіјкӏмпорԛгтухԝһьҽɡɩαβγδεζικνορτυχωοⅼ",
            "abcdesijklmnopqrtyxwhbegiabydezikvoptuxwol",
            strict=True,
        )
    )
)

_INVISIBLE: Final = frozenset("\u00ad\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\ufeff")
_MAY_HIDE: Final = re.compile(r"[^\n\r\t -~]")
_AS_PICTURE: Final = "\ufe0f"
_JOINS_PICTURES: Final = "\u200d"
_LAST_LATIN: Final = "\u024f"

_ENDS: Final = re.compile(  # sentence ends, including those of Hindi, Chinese and Japanese
    r"(?<=[.!?\u0964])\s+|(?<=[\u3002\uff01\uff1f])|\n+|;\s+"
)

_SHORTEST: Final = 3  # a shorter sentence says nothing
_DIGITS_FOR_LETTERS: Final = "013457@$!"
_STANDS_FOR: Final = str.maketrans(_DIGITS_FOR_LETTERS, "oieastasi")


@dataclass(frozen=True)
class Text:
    """One text at *place*, such as ``inputSchema.properties.path.description``."""

    place: str
    value: str

    @cached_property
    def folded(self) -> str:
        """The text as a reader or a model understands it: invisible characters and accents removed, look-alike letters
        replaced by plain small Latin ones, one space between words.
        """
        return fold(self.value)

    @cached_property
    def unspaced(self) -> str:
        """The folded text in its original script, without spaces; "" if all letters are Latin."""
        if self.value.isascii():
            return ""
        plain = "".join(_visible(self.value).casefold().replace("_", " ").split())
        return plain if any(character > _LAST_LATIN for character in plain) else ""

    @cached_property
    def joined(self) -> str:
        """The folded text without anything between its letters, for letters that are set apart: ``i g n o r e``."""
        return "".join(filter(str.isalnum, self.folded))

    @cached_property
    def spelt(self) -> str:
        """The folded text with digits and signs read as the letters that they stand for within words: ``1gn0re``."""
        return as_spelt(self.folded)


def sentences_of(text: str) -> list[str]:
    """*text* cut behind full stops, semicolons and lines. Parts that are too short to say anything are left out."""
    return [part for each in _ENDS.split(text) if len(part := each.strip()) >= _SHORTEST]


def fold(text: str) -> str:
    """Return *text* as `Text.folded` says."""
    if text.isascii():
        return " ".join(text.lower().replace("_", " ").split())
    letters = unicodedata.normalize("NFD", _visible(text).casefold().translate(_LOOKS_LIKE))
    plain = "".join(character for character in letters if not _is_accent(character))
    return " ".join(unicodedata.normalize("NFC", plain).replace("_", " ").split())


def _visible(text: str) -> str:
    """*text* without invisible characters, and with each letter in its plain form."""
    return unicodedata.normalize("NFKC", "".join(character for character in text if not is_invisible(character)))


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def as_spelt(folded: str) -> str:
    """*folded* with digits and signs read as the letters that they stand for within words: ``1gn0re``."""
    return " ".join(map(_as_letters, folded.split()))


def _as_letters(word: str) -> str:
    has_both = any(each.isalpha() for each in word) and any(each in _DIGITS_FOR_LETTERS for each in word)
    return word.translate(_STANDS_FOR) if has_both else word


def is_invisible(character: str) -> bool:
    """Whether nothing is drawn for *character*: format characters, fillers and selectors."""
    if character.isascii():
        return False
    return (
        character in _INVISIBLE
        or unicodedata.category(character) == "Cf"
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0000" <= character <= "\U000e01ef"
    )


def texts_of(entry: JsonObject) -> Iterator[Text]:
    """Every string in *entry*, including the names of its properties, in the order of the listing."""
    stack: list[tuple[str, Json]] = [("", {key: value for key, value in entry.items() if key not in PICTURES})]
    while stack:
        place, value = stack.pop()
        if isinstance(value, str):
            yield Text(place, value)
        elif is_object(value):
            for key in value:
                yield Text(f"{place}.*" if place else "*", key)
            stack += [(f"{place}.{key}" if place else key, each) for key, each in reversed(list(value.items()))]
        elif is_list(value):
            stack += [(f"{place}[{index}]", each) for index, each in reversed(list(enumerate(value)))]


def evidence(text: str, start: int = 0, end: int | None = None) -> str:
    """The part of *text* from *start* to *end* and a little before it, on one line, with odd characters escaped."""
    stop = len(text) if end is None else end
    return printable(text[max(start - _CONTEXT_CHARACTERS, 0) : min(stop, start + _EVIDENCE_CHARACTERS)])


def printable(text: str, limit: int = _EVIDENCE_CHARACTERS) -> str:
    """The beginning of *text* with odd characters escaped, in at most twice *limit* characters."""
    return "".join(map(_written_out, text[: 2 * limit]))[: 2 * limit]


def visible(text: str) -> str:
    r"""The whole *text*, with an escape for every character that is hidden or changes others: ``\u{202e}``.

    Line breaks and tabs stay, and so do the selectors and joiners within one emoji.
    """
    return _MAY_HIDE.sub(lambda found: _kept_in_emoji(text, found.start()) or _written_out(found[0]), text)


def _kept_in_emoji(text: str, place: int) -> str:
    """The character at *place* if it only changes the emoji before it, "" otherwise."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if text[place] == _AS_PICTURE:
        return _AS_PICTURE if _is_picture(before) else ""
    is_joiner = text[place] == _JOINS_PICTURES and _is_picture(after)
    return _JOINS_PICTURES if is_joiner and (_is_picture(before) or before == _AS_PICTURE) else ""


def _is_picture(character: str) -> bool:
    return character != "" and unicodedata.category(character) in ("So", "Sk")


def _written_out(character: str) -> str:
    if character == " " or (character.isprintable() and not is_invisible(character)):
        return character
    return f"\\u{{{ord(character):x}}}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the scan has against a definition.

    rule      a stable name, such as ``hidden-characters``
    place     its place in the entry: ``description``, ``inputSchema.properties.path.description``
    evidence  the words, short and printable; nothing that could steer a terminal or a model
    """

    rule: str
    place: str
    evidence: str
