"""The rules that look at texts by themselves: hidden characters, encoded text, known phrases.

They are offline and deterministic. A finding is a reason to look, not a proof.
"""

from __future__ import annotations

import base64
import binascii
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any
from urllib.parse import unquote_to_bytes

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.scanning.texts import Finding, Text, evidence, is_invisible, sentences_of
from toolsearch.wire.mcp.definitions import NAME_PLACES

_MAX_BLANK_LINES = 20
_MAX_BLANKS = 200
_PLAIN_CONTROLS = frozenset("\t\n\r")
_ESCAPES = frozenset("\x1b\x9b")
_JOINERS = frozenset("\u200c\u200d")  # Persian and Indic scripts and emoji need them
_DIRECTIONS = frozenset("\u200e\u200f\u061c")  # texts that mix both directions need these marks
_FLAG = "\U0001f3f4"
_FLAG_END = "\U000e007f"


def hidden_characters(text: Text) -> Iterator[Finding]:
    """The first character that only machines can see."""
    if text.value.isascii() and text.value.isprintable():
        return
    for index, character in enumerate(text.value):
        if _is_control(character) or (is_invisible(character) and not _is_spelling(text.value, index)):
            yield Finding("hidden-characters", text.place, evidence(text.value, index, index + 24))
            return


def terminal_escapes(text: Text) -> Iterator[Finding]:
    """An escape sequence that could repaint the terminal on which the text is shown."""
    index = next((i for i, character in enumerate(text.value) if character in _ESCAPES), None)
    if index is not None:
        yield Finding("terminal-escapes", text.place, evidence(text.value, index, index + 24))


def out_of_sight(text: Text) -> Iterator[Finding]:
    """Words behind so much white space that they are outside every window."""
    for gap in _gaps(text.value):
        if gap.count("\n") > _MAX_BLANK_LINES or len(gap) > _MAX_BLANKS:
            after = text.value.partition(gap)[2]
            yield Finding("out-of-sight", text.place, evidence(after))
            return


def _gaps(value: str) -> Iterator[str]:
    """The runs of white space between words that are longer than `_MAX_BLANK_LINES`."""
    if len(value) <= _MAX_BLANK_LINES:
        return
    start = None
    for index, character in enumerate(value):
        if character.isspace():
            start = index if start is None else start
        elif start is not None:
            if index - start > _MAX_BLANK_LINES:
                yield value[start:index]
            start = None


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" and character not in _PLAIN_CONTROLS | _ESCAPES


def _is_spelling(value: str, index: int) -> bool:
    """Whether the invisible character at *index* is part of how its text is written."""
    character = value[index]
    if "\ufe00" <= character <= "\ufe0f":
        return index > 0 and not value[index - 1].isspace()
    if character in _JOINERS:
        return not _is_latin(value[index - 1 : index]) and not _is_latin(value[index + 1 : index + 2])
    if character in _DIRECTIONS:
        return any(unicodedata.bidirectional(each) in {"R", "AL"} for each in value)
    if "\U000e0020" <= character <= _FLAG_END:  # a regional flag is a black flag, letters and an end mark
        start = value.rfind(_FLAG, 0, index)
        return start >= 0 and index - start <= 7 and value[start:].partition(_FLAG_END)[0].count(" ") == 0
    return False


def _is_latin(character: str) -> bool:
    return not character or character.isascii()


_re2: Any = untyped_re2
_MAX_TEXT_CHARACTERS = 20_000
_MAX_UNPACKED_CHARACTERS = 65_536  # most characters decoded of one text
_FEWEST_WORDS = 4  # decoded data with fewer words is not taken for text


def _from_base64(packed: bytes) -> bytes:
    body = packed.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    body = body[: len(body) // 4 * 4]  # a tail of up to three characters is cut off; nothing can hide in it
    return base64.b64decode(body)


_PACKINGS: tuple[tuple[Any, Callable[[bytes], bytes]], ...] = (
    (_re2.compile(r"(?:[0-9a-fA-F]{2}){20,}"), lambda packed: binascii.unhexlify(packed[: len(packed) // 2 * 2])),
    (_re2.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}"), _from_base64),
    (_re2.compile(r"(?:%[0-9a-fA-F]{2}){16,}"), unquote_to_bytes),
)


def packed_text(text: Text) -> Iterator[Finding]:
    """The first run of base64, hex or percent codes that decodes to words."""
    as_bytes = text.value[:_MAX_UNPACKED_CHARACTERS].encode(errors="replace")
    for expression, unpack in _PACKINGS:
        for match in expression.finditer(as_bytes):
            words = _words(unpack, match.group())
            if words:
                yield Finding("packed-text", text.place, evidence(words))
                return


def too_long(text: Text) -> Iterator[Finding]:
    """A text that is longer than anybody would read, so that anything could be in it."""
    if len(text.value) > _MAX_TEXT_CHARACTERS:
        yield Finding("too-long", text.place, f"{len(text.value)} characters: {evidence(text.value, 0, 40)}")


def _words(unpack: Callable[[bytes], bytes], packed: bytes) -> str:
    """The words in *packed*, or "" if it does not decode to text."""
    try:
        words = unpack(packed).decode()
    except ValueError:  # the base class of binascii's errors and decoding errors
        return ""
    readable = all(character.isprintable() or character.isspace() for character in words)
    return words if readable and len(words.split()) >= _FEWEST_WORDS else ""


_CONTEXT_BYTES = 16  # bytes of context before a phrase
_SHORT = 64  # characters
_MOST_REMEMBERED = 1_024  # short texts whose phrases are remembered
_NOT_IN_NAMES = "sends-data-away"  # `read_private_key` says what the tool is for, not where the key goes


# Eight single letters in a row; "a, b, c, d" is only a list of choices.
_LETTERS_APART = _re2.compile(rb"(?:\b[a-z]\b\W+){7}\b[a-z]\b")
_DIGIT_IN_WORD = _re2.compile(rb"[a-z][013457@$!]|[013457@$!][a-z]")

_REQUIRED_IDEAS = (  # every pattern needs one of these ideas; harmless English texts hardly ever have one
    *("earlier", "role", "user", "hide", "secretly", "first", "agree", "secret", "said", "keys"),
)


def known_phrases(text: Text) -> Iterator[Finding]:
    """The first phrase of each kind that addresses the model instead of describing the tool, within one sentence.

    Line breaks make no difference.
    """
    is_short = len(text.value) <= _SHORT
    for rule, words in (_phrases_of_short if is_short else _phrases_in)(text.value):
        if rule != _NOT_IN_NAMES or text.place not in NAME_PLACES:
            yield Finding(rule, text.place, words)


def _phrases_in(value: str) -> list[tuple[str, str]]:
    """The rule and the words of each phrase in *value*."""
    found: dict[str, str] = {}
    sentences = (Text("", sentence) for sentence in sentences_of(" ".join(value.split())))
    for reading, expressions in chain.from_iterable(map(_readings, sentences)):
        for rule, expression in expressions.items():
            if rule not in found and (match := expression.search(reading)):
                words = reading[max(match.start() - _CONTEXT_BYTES, 0) : match.end()].decode(errors="ignore")
                found[rule] = evidence(words)
    return list(found.items())


_phrases_of_short = lru_cache(_MOST_REMEMBERED)(_phrases_in)  # keys and words of JSON come again in every result


def _readings(text: Text) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Each way to read *text*, with the expressions to look for in it: one for each rule."""
    folded = text.folded.encode(errors="replace")  # RE2's binding is several times slower on str
    yield folded, _english()
    if _DIGIT_IN_WORD.search(folded):
        yield text.spelt.encode(errors="replace"), _english()
    if _LETTERS_APART.search(folded):
        yield text.joined.encode(errors="replace"), _english_unspaced()
    if _any_latin().search(folded):
        for language in _languages(is_latin=True):
            yield folded, _phrases_of(language)
    if text.unspaced:
        unspaced = text.unspaced.encode(errors="replace")
        for language in _languages(is_latin=False):
            yield unspaced, _phrases_of(language)


@cache
def _document(name: str) -> Mapping[str, Any]:
    return tomllib.loads(files("toolsearch.scanning").joinpath(name).read_text(encoding="utf-8"))


@cache
def _english() -> Mapping[str, Any]:
    return {name: _compiled(text) for name, text in _english_texts().items()}


@cache
def _english_unspaced() -> Mapping[str, Any]:
    """The English expressions for text without spaces between its words."""
    return {name: _compiled(_without_spaces(text)) for name, text in _english_texts().items()}


def _english_texts() -> Mapping[str, str]:
    """One English expression for each rule, in the order of the file."""
    document = _document("phrases.toml")
    return {
        rule["name"]: _with_parts("|".join(f"(?:{each})" for each in rule["phrases"])) for rule in document["rules"]
    }


def _without_spaces(expression: str) -> str:
    for gone in (r"\b", " ?", " *", " "):
        expression = expression.replace(gone, "")
    return expression


def _languages(*, is_latin: bool) -> list[str]:
    document = _document("languages.toml")
    return [name for name, each in document.items() if name != "shapes" and each["is_latin"] is is_latin]


@cache
def _any_latin() -> Any:
    """Finds words that every phrase of the languages in Latin letters needs: most texts have none of them."""
    languages = _languages(is_latin=True)
    return _compiled("|".join(_idea(language, idea) for language in languages for idea in _REQUIRED_IDEAS))


@cache
def _phrases_of(language: str) -> Mapping[str, Any]:
    shapes: Mapping[str, list[str]] = _document("languages.toml")["shapes"]
    return {
        rule: _compiled("|".join(f"(?:{_shape(language, shape)})" for shape in of_rule))
        for rule, of_rule in shapes.items()
    }


def forget_what_was_read() -> None:
    """Compile the expressions anew. RE2 keeps states of what each has read: 10 MB after the tools of eleven servers."""
    for compiled in (_english, _english_unspaced, _any_latin, _phrases_of):
        compiled.cache_clear()
    _re2.purge()  # the binding keeps expressions, too
    _english()
    _any_latin()


def _shape(language: str, shape: str) -> str:
    gap: int = _document("languages.toml")[language]["gap"]
    return f".{{0,{gap}}}".join(_idea(language, idea) for idea in shape.split())


def _idea(language: str, idea: str) -> str:
    words = _document("languages.toml")[language]
    begins = r"\b" if words["is_latin"] else ""
    return f"{begins}(?:{_with_parts(words[idea])})"


def _with_parts(expression: str) -> str:
    """Replace the names in *expression* by the parts of ``phrases.toml``."""
    parts: Mapping[str, str] = _document("phrases.toml")["parts"]
    for name, part in parts.items():
        expression = expression.replace(f"%{name}%", part)
    return expression


def _compiled(expression: str) -> Any:
    options = _re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return _re2.compile(expression, options)


_SHORTEST_PHRASE = len("sidenote")

_CERTAIN: Sequence[Callable[[Text], Iterator[Finding]]] = (
    hidden_characters,
    terminal_escapes,
    out_of_sight,
    packed_text,
    too_long,
)


def findings_in(texts: Iterable[Text], *, margin: float = 0.0) -> Iterator[Finding]:
    """The hidden texts in *texts*, and those that would make a model do more than the tool does, in the order of the
    texts.

    *margin* raises the classifier's threshold, for texts that naturally tell somebody what to do.
    """
    telling = [text for text in texts if not _is_plain_word(text.value)]
    for text, steering in zip(telling, steering_in(telling, margin=margin), strict=True):
        for rule in _CERTAIN:
            yield from rule(text)
        yield from steering


def steering_in(texts: Sequence[Text], *, margin: float = 0.0) -> Iterator[list[Finding]]:
    """For each of *texts*, the findings of steering: by the known phrases, or else by all words."""
    from toolsearch.scanning.steering import steering  # imported here because it loads numpy

    judged = dict(steering(texts, margin=margin))
    for index, text in enumerate(texts):
        by_words = [judged[index]] if index in judged else []
        yield list(known_phrases(text)) or by_words


def _is_plain_word(value: str) -> bool:
    """Whether the text is too short to say anything and hides nothing, like most texts of a schema: ``type``,
    ``string``.
    """
    return len(value) < _SHORTEST_PHRASE and value.isascii() and value.isprintable()
