"""Findings about the phrases that everybody knows: orders to a model, secrecy, and requests for data, word for word.

The phrases are in ``phrases.toml``, those of other languages in ``languages.toml``. `tests/gateway/test_scan.py`
measures how many of such attacks they find. For all other wordings there is the classifier in `steering`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.texts import Text, evidence, sentences_of
from toolsearch.wire.mcp.definitions import NAME_PLACES

_re2: Any = untyped_re2
_BEFORE = 16  # bytes of context before a phrase
_NOT_IN_NAMES = (
    "sends-data-away"  # `read_private_key` says what the tool is for, and what becomes of the key is not said
)
_LETTERS_APART = _re2.compile(rb"(?:\b[a-z]\b\W+){7}\b[a-z]\b")  # so many in a row; "a, b, c, d" is a list of choices
_DIGIT_IN_WORD = _re2.compile(rb"[a-z][013457@$!]|[013457@$!][a-z]")
_RARE = (  # every pattern needs one of these ideas, and harmless English texts hardly ever have one
    *("earlier", "role", "user", "hide", "secretly", "first", "agree", "secret", "said", "keys"),
)


def known_phrases(text: Text) -> Iterator[Finding]:
    """The first phrase of each kind that is meant for the model and not about the tool, within one sentence.

    Where lines are broken makes no difference.
    """
    found: dict[str, Finding] = {}
    sentences = (Text(text.place, sentence) for sentence in sentences_of(" ".join(text.value.split())))
    for reading, expressions in chain.from_iterable(map(_readings, sentences)):
        for rule, expression in expressions.items():
            if rule in found or (rule == _NOT_IN_NAMES and text.place in NAME_PLACES):
                continue
            if match := expression.search(reading):
                words = reading[max(match.start() - _BEFORE, 0) : match.end()].decode(errors="ignore")
                found[rule] = Finding(rule, text.place, evidence(words))
    yield from found.values()


def _readings(text: Text) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Each way to read *text*, with what to look for in it: an expression for each rule."""
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
    """The same for text whose words are not apart any more."""
    return {name: _compiled(_without_spaces(text)) for name, text in _english_texts().items()}


def _english_texts() -> Mapping[str, str]:
    """One expression for each rule, in the order of the file."""
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
    """Finds what has to be there for any phrase of the languages in Latin letters: most texts have nothing of it."""
    languages = _languages(is_latin=True)
    return _compiled("|".join(_idea(language, idea) for language in languages for idea in _RARE))


@cache
def _phrases_of(language: str) -> Mapping[str, Any]:
    shapes: Mapping[str, list[str]] = _document("languages.toml")["shapes"]
    return {
        rule: _compiled("|".join(f"(?:{_shape(language, shape)})" for shape in of_rule))
        for rule, of_rule in shapes.items()
    }


def _shape(language: str, shape: str) -> str:
    gap: int = _document("languages.toml")[language]["gap"]
    return f".{{0,{gap}}}".join(_idea(language, idea) for idea in shape.split())


def _idea(language: str, idea: str) -> str:
    words = _document("languages.toml")[language]
    begins = r"\b" if words["is_latin"] else ""
    return f"{begins}(?:{_with_parts(words[idea])})"


def _with_parts(expression: str) -> str:
    """*expression* with parts of ``phrases.toml`` in the place of their names."""
    parts: Mapping[str, str] = _document("phrases.toml")["parts"]
    for name, part in parts.items():
        expression = expression.replace(f"%{name}%", part)
    return expression


def _compiled(expression: str) -> Any:
    options = _re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return _re2.compile(expression, options)
