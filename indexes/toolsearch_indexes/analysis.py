"""Text into terms, the same way for tools and for queries.

A word is folded (NFKC, case, diacritics), an identifier is split at case, punctuation and digits and also kept whole
(``sendEmail``, ``send_email`` and ``send-email`` all give *send*, *email*, *sendemail*), English words are brought into
American spelling and stemmed, and Chinese, Japanese and Korean runs become pairs of characters.

The form before that is called the *surface*, spelt as it was written: typos and prefixes are looked up among surfaces,
since a misspelt word stems differently from the right one.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Protocol, cast

import Stemmer  # type: ignore[import-not-found]

# Beginnings of words that end in -ise and are never written with a z.
_NEVER_IZE = (
    "adv advert appr chast chem circumc compr comprom conc dem desp dev enterpr exc exerc expert franch improv inc "
    "merchand moonr mort parad pract prec prem prom repr rev sunr superv surm surpr telev treat upr w"
)

_ISE = re.compile(
    "(?<=[a-z][a-z][b-df-hj-np-tv-z])"  # keeps words such as *rise* and *noise*
    + "".join(f"(?<!{root})" for root in _NEVER_IZE.split())
    + "is(?=(?:e[drs]?|ers|ing(?:s|ly)?|ab(?:le|ly)|ations?|ational(?:ly)?)$)"
)

_RE = "calib|cent|fib|lit|lust|manoeuv|meag|met|sab|scept|sepulch|somb|spect|theat"


# Each rule: letters that a word must contain (a quick check), the pattern, and its replacement.
_RULES = (
    ("is", _ISE, "iz"),
    ("lys", re.compile("(?<=[a-z][aeo])lys(?=(?:e[drs]?|ers|ing)$)"), "lyz"),
    (
        "our",
        re.compile(
            "(arb|ard|arm|behavi|cand|clam|col|demean|endeav|enam|fav|ferv|flav|glam|harb|hon|hum|lab|neighb|od|parl"
            "|ranc|rig|rum|savi?|splend|succ|tum|val|vap|vig)our"
        ),
        r"\1or",
    ),
    ("re", re.compile(f"({_RE})r(?:e(?=s?$)|(?=ed$))"), r"\1er"),
    ("ring", re.compile(f"({_RE})r(?=ing$)"), r"\1er"),
    ("logu", re.compile("(ana|cata|dia|homo|mono)(?:logue(?=s?$)|logu(?=(?:ed|ers?|ing)$))"), r"\1log"),
    ("enc", re.compile("(def|lic|off|pret)enc(?=(?:e[ds]?|ing)$)"), r"\1ens"),
    # The stemmer shortens words such as *travelled* to one l. These words need a rule.
    ("ll", re.compile("^(counse|dia|due|fue|grue|initia|tria|via|woo)ll(?=(?:ed|ens?|ing|ors?)$)"), r"\1l"),
    ("programme", re.compile("programme(?=s?$)"), "program"),
)

_BEGINNINGS = {
    "acknowledgement": "acknowledgment",
    "aeroplane": "airplane",
    "anaesth": "anesth",
    "artefact": "artifact",
    "cypher": "cipher",
    "diarrhoea": "diarrhea",
    "enquir": "inquir",
    "focuss": "focus",
    "foetus": "fetus",
    "gynaec": "gynec",
    "haema": "hema",
    "haemo": "hemo",
    "jewellery": "jewelry",
    "judgement": "judgment",
    "moustache": "mustache",
    "oesoph": "esoph",
    "oestr": "estr",
    "plough": "plow",
    "practis": "practic",
    "pyjama": "pajama",
    "sceptic": "skeptic",
    "yoghurt": "yogurt",
}

_BEGINNING = re.compile(f"^(?:{'|'.join(_BEGINNINGS)})")
_PARTS = {"aemia": "emia", "aluminium": "aluminum", "grey": "gray", "manoeuv": "maneuv", "paed": "ped", "sulph": "sulf"}
_PART = re.compile("|".join(_PARTS))


def american(word: str) -> str:
    """Return the American spelling of *word*, which has only small ASCII letters and may be inflected."""
    for letters, british, replacement in _RULES:
        if letters in word:
            word = british.sub(replacement, word)
    if _PART.search(word):
        word = _PART.sub(lambda found: _PARTS[found.group()], word)
    found = _BEGINNING.match(word)
    return _BEGINNINGS[found.group()] + word[found.end() :] if found else word


# Scripts whose vowel signs and tone marks are not word characters to Python: Hebrew, Arabic, Indic to Lao, Tibetan to
# Myanmar, Khmer. Latin's combining accents are here too; they are folded away later.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0eff\u0f00-\u109f\u1780-\u17ff"
_PIECE = rf"[^\W_]|[{_MARKS}]"
_WORD = re.compile(rf"(?:{_PIECE})+(?:[_.\-']+(?:{_PIECE})+)*")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:[_.\-']+[A-Za-z0-9]+)*")


# Everything between words becomes a space.
_GAPS = bytes(ord(" ") if re.match(r"[^A-Za-z0-9_.\-']", chr(byte)) else byte for byte in range(256))
_JOINERS = re.compile(r"[_.\-']+")
_ACCENTS = re.compile("[\u0300-\u036f]")

_CJK = re.compile(  # Hangul, kana and Han
    "[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)

_CASE_OR_DIGIT = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_WORD = 200  # characters; longer ones are data, not words
_CACHED_QUERY_WORDS = 10_000


# Words that shape a sentence but do not distinguish tools. Verbs that say what a tool does (get, find, use) stay.
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below between
    both but by can cannot could did do does doing don down during each either else few for from further had has
    have having he her here hers him his how however i if in into is it its itself just ll let may me might more
    most must my myself no nor not of off on once only or other ought our ours out over own please re s same shall
    she should so some such t than that the their theirs them then there these they this those through to too under
    until up upon us ve very was we were what when where which while who whom whose why will with within without
    would you your yours d m want wants wanted need needs needed like looking able help
    """.split()  # noqa: SIM905 - a list of a hundred strings does not read
)


def words(text: str) -> list[str]:
    """The raw words of *text*: identifiers in one piece, case kept."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def pieces(text: str) -> list[str]:
    """Cut *text* at the ends of words. Most pieces are one word with the marks around it.

    This is quicker than `words` for a caller that asks for the words of each distinct piece once.
    """
    return text.encode().translate(_GAPS).decode().split() if text.isascii() else words(text)


def surfaces(word: str) -> tuple[str, ...]:
    """Return the folded, unstemmed forms by which one raw word is found: first its parts, then the whole.

    A part of one letter or digit is not found by itself: ``s3`` does not match 3.
    """
    if not word.isascii():
        parts = [part for piece in _JOINERS.split(word[:_LONGEST_WORD]) for part in _split_scripts(piece)]
    elif word.isalpha() and (word.islower() or word[1:].islower()):  # the quick way, since most words are like this
        return (word[:_LONGEST_WORD].lower(),)
    else:
        parts = _ascii_parts(word[:_LONGEST_WORD])
    if len(parts) < 2 or (not word.isascii() and _CJK.search(word)):
        return tuple(parts)
    if "'" in word and parts[-1] in _CLITICS:
        return tuple(parts[:-1])
    return (*[part for part in parts if len(part) > 1], "".join(parts))


_CLITICS = frozenset({"s", "t", "ll", "re", "ve", "d", "m"})


def _split_scripts(piece: str) -> list[str]:
    """Split one run of letters, marks and digits at case and digits, and CJK into pairs."""
    if piece.isascii():
        return _ascii_parts(piece)
    parts: list[str] = []
    end = 0
    for run in _CJK.finditer(piece):
        parts.extend(_split_case(piece[end : run.start()]))
        parts.extend(_pairs(run.group()))
        end = run.end()
    parts.extend(_split_case(piece[end:]))
    return parts


def _ascii_parts(word: str) -> list[str]:
    """The parts of *word* in small letters, without the separators between them."""
    parts: list[str] = _CASE_OR_DIGIT.findall(word)
    return " ".join(parts).lower().split()


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _split_case(piece: str) -> list[str]:
    """The Unicode form of the ASCII split: at lower to upper, before the last capital of several, and around digits."""
    parts: list[str] = []
    start = 0
    for i in range(1, len(piece)):
        before, here = piece[i - 1], piece[i]
        after = piece[i + 1 : i + 2]
        if (
            before.isdigit() != here.isdigit()
            or (before.islower() and here.isupper())
            or (before.isupper() and here.isupper() and after.islower())
        ):
            parts.append(piece[start:i])
            start = i
    parts.append(piece[start:])
    return [folded for part in parts if (folded := fold(part))]


def fold(text: str) -> str:
    """NFKC, casefold, and Latin, Greek and Cyrillic letters without their accents."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802  the library's name


_stemmer = cast("_Stemmer", Stemmer.Stemmer("english", 0))  # pyright: ignore[reportUnknownMemberType]
_stemmer_lock = threading.Lock()  # two threads must not share a Stemmer's buffer


def stem(surface: str) -> str:
    """The term that a surface is indexed under."""
    if len(surface) < 3 or not surface.isascii() or not surface.isalpha():
        return surface
    with _stemmer_lock:
        return _stemmer.stemWord(american(surface))


@lru_cache(maxsize=_CACHED_QUERY_WORDS)
def stemmed_surfaces(word: str) -> tuple[tuple[str, str], ...]:
    """The surfaces of one raw word of a query, each with its term."""
    return tuple((surface, stem(surface)) for surface in surfaces(word))


def name_words(name: str) -> str:
    """The words of an identifier as a phrase: ``createIssue_v2`` gives ``create issue v 2``."""
    return " ".join(part for piece in _JOINERS.split(name) for part in _split_scripts(piece))


def terms(text: str) -> list[str]:
    """All terms of *text* in order, without stop words."""
    found = (pair for word in words(text) for pair in stemmed_surfaces(word))
    return [term for surface, term in found if surface not in STOP_WORDS]
