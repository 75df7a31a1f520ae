"""Finds the secrets in a server's entry, which no message may show. Many are written into arguments and addresses.

A secret is recognised by its place (``--api-key X``, ``PASSWORD=X``, ``Authorization: X``, in an address) or,
elsewhere, by its look. In a message it is harmless to hide a word too many, but a missed word is a leak. In a result
every hidden word is lost data, so only certain secrets are removed from results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json

_SHORTEST = 6  # removing shorter values, such as "1" or "true", would tear up every message
_SHORTEST_KEY = 20  # fewest characters of a word that looks like a key by itself
_TELLING = re.compile(
    r"token(?!i[sz])|key(?!board|cloak|word|note|space|frame)|secret|passw|passphrase|pwd|credential|auth(?!or(?!i))"
    r"|bearer|cookie|header|dsn|(^|[-_])pat$|^H$",
    re.IGNORECASE,
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_PREFIXES = re.compile(  # prefixes by which makers mark their keys
    r"(sk|pk|rk)[-_]|gh[opusr]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|hf_|npm_|pypi-|eyJ|ya29\.|dop_v1_|shpat_"
)
_OfUrl: TypeAlias = Callable[[str], list[str]]
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9_+~-]+")


def as_secrets(*groups: Iterable[str]) -> frozenset[str]:
    """*groups* in the forms in which messages show them: stripped, also line by line, without values that are too
    short.
    """
    stripped = {value.strip() for values in groups for value in values}
    lines = {line.strip() for value in stripped for line in value.splitlines()}
    return frozenset(value for value in stripped | lines if len(value) >= _SHORTEST)


def secrets_of_arguments(arguments: Iterable[str]) -> list[str]:
    """The values that follow a telling option, or a telling name in the same argument; the query values of addresses;
    and words that look like keys.
    """
    return _in_arguments(arguments, secrets_of_url)


def certain_secrets(arguments: Iterable[str], *named: Mapping[str, str]) -> list[str]:
    """The certain secrets of *arguments*, and of *named*, such as headers or variables. Query values of addresses count
    only if their name is telling. A folder or the name of a project is not among these.
    """
    return _in_arguments(
        [*arguments, *(f"{key}={value}" for each in named for key, value in each.items())], _certain_secrets_of_url
    )


def _in_arguments(arguments: Iterable[str], of_url: _OfUrl) -> list[str]:
    found: list[str] = []
    option = ""
    for argument in arguments:
        if is_telling(option) and not argument.startswith("-"):
            found += _with_words(argument)
        found += _in_text(argument, of_url)
        option = argument.lstrip("-") if argument.startswith("-") and "=" not in argument else ""
    return found


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """All header values, whole and without the first word: a server that echoes ``Bearer abc`` may leave out
    ``Bearer``.
    """
    return [secret for value in headers.values() for secret in _with_words(value)]


def secrets_of_url(url: str) -> list[str]:
    """The password and the query values of an address. Raises ValueError."""
    parts = urlsplit(url)
    password = parts.password or ""
    return [value for _, value in parse_qsl(parts.query)] + [password, unquote(password)]


def _certain_secrets_of_url(url: str) -> list[str]:
    parts = urlsplit(url)
    password = parts.password or ""
    return [value for name, value in parse_qsl(parts.query) if is_telling(name)] + [password, unquote(password)]


def keys_in(text: str) -> list[str]:
    """The words of *text* that look machine-made, wherever they stand."""
    return list(filter(_looks_like_key, _BETWEEN_WORDS.split(text)))


def is_telling(name: str) -> bool:
    """Whether a value of this name is likely a secret."""
    return _TELLING.search(name.strip().lstrip("-")) is not None


def _in_text(text: str, of_url: _OfUrl) -> Iterator[str]:
    """The secrets in one argument: ``--token=X``, ``KEY=X``, ``Header: X``, in an address, or by their look."""
    for url in _URL.findall(text):
        with suppress(ValueError):  # the text only looked like an address
            yield from of_url(url)
    for sign in ("=", ":"):
        name, found, value = text.partition(sign)
        if found and is_telling(name):
            yield from _with_words(value)
    yield from keys_in(text)


def _with_words(value: str) -> list[str]:
    """*value*, and each word after its first, such as ``Bearer``."""
    return [value, *value.split()[1:]]


def _looks_like_key(word: str) -> bool:
    if len(word) < _SHORTEST_KEY:
        return False
    return _PREFIXES.match(word) is not None or any(
        len(part) >= _SHORTEST_KEY and _is_mixed(part) for part in re.split("[-_]", word)
    )


def _is_mixed(word: str) -> bool:
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return *text* with ``***`` for every secret, longest first, so that no secret leaves the tail of another."""
    for secret in sorted(secrets, key=lambda value: (-len(value), value)):
        text = text.replace(secret, "***")
    return text


def redacted_json(value: Json, secrets: Collection[str]) -> Json:
    """Return *value* with ``***`` for every secret in its texts and keys; numbers stay as they are."""
    if not secrets:
        return value
    written = json.dumps(value, ensure_ascii=False)
    if not any(json.dumps(secret, ensure_ascii=False)[1:-1] in written for secret in secrets):
        return value
    return _redacted_within(value, secrets)


def _redacted_within(value: Json, secrets: Collection[str]) -> Json:
    if isinstance(value, str):
        return redacted(value, secrets)
    if is_object(value):
        return {redacted(key, secrets): _redacted_within(each, secrets) for key, each in value.items()}
    if is_list(value):
        return [_redacted_within(each, secrets) for each in value]
    return value
