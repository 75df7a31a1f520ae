"""What the server of an OpenAPI document is called, where nobody has named it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import dropwhile, takewhile
from urllib.parse import urlsplit

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.tools.definition import legal_name
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import in_words

_MAX_LENGTH = 24  # it stands before each name, and names have 64 characters
_POSSESSIVE = re.compile(r"['’]s\b")  # noqa: RUF001
_VARIABLE = re.compile(r"\{[^{}]*\}")
_VERSION = re.compile(r"v?[0-9]+((alpha|beta|rc)[0-9]*)?|[a-z]")  # or what is left of a word, as the s of its

_FILLER = frozenset(  # words that tell nothing of an API
    """
    a an and api apis apiv app application backend beta client clients definition definitions developer developers
    doc docs document documentation fastapi for http https in interface json management my new of official open
    openapi our platform public reference rest restful schema server service services spec specification specs
    swagger the to version web with yaml your
    """.split()  # noqa: SIM905
)
_FILLER_IN_HOSTS = _FILLER | frozenset(  # and those that say what a host is for, or stand for a customer's name
    """
    company demo dev development domain gateway host instance live mock prod production sandbox secure stage staging
    subdomain tenant test testing www
    """.split()  # noqa: SIM905
)
_NO_BRANDS = frozenset(  # in hosts of examples, and of companies that host the APIs of others or many of their own
    """
    amazonaws apigee appspot azure azurestack azurewebsites cloudfront cloudfunctions example githubusercontent
    googleapis herokuapp netlify ngrok onrender pstmn rapidapi swagger swaggerhub vercel workers
    """.split()  # noqa: SIM905
)
_NOBODYS_ENDINGS = frozenset(
    {"arpa", "example", "external", "home", "internal", "invalid", "lan", "local", "localhost", "test"}
)
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})  # of two endings, as in co.uk and com.au
_LETTERS_OF_A_COUNTRY = 2
_ANYTHING = "*"


def server_name(document: JsonObject, file_name: str = "") -> str:
    """Return a short name that depends on this document alone: ``github`` for ``https://api.github.com``.

    It is made of the first server's host, or else of the title, of *file_name*, or of the title with all its words;
    "" if none of these has a letter or digit of A-Z, a-z, 0-9.
    """
    title = (as_object(document.get("info")) or {}).get("title")
    words = _words(title) if isinstance(title, str) else []
    candidates = (_telling_of_host(document), _telling(words), _telling(_words(file_name)), words)
    return next((name for telling in candidates if (name := _joined(telling))), "")


def _telling_of_host(document: JsonObject) -> list[str]:
    """``["adyen", "checkout"]`` of ``checkout-test.adyen.com``: the domain's own name before what is within it."""
    labels = _own_labels(document)
    if not labels or labels[-1] in _NO_BRANDS:
        return []
    *inner, domain = map(_telling_in_label, labels)
    return [*domain, *(word for label in inner for word in label)] if domain else []


def _telling_in_label(label: str) -> list[str]:
    return [word for word in legal_name(label).split("-") if word and not _is_filler(word, _FILLER_IN_HOSTS)]


def _own_labels(document: JsonObject) -> list[str]:
    """The labels of the first server's host without its ending; none if the host does not say whose it is.

    A label with a variable in it is a customer's own, and left out.
    """
    servers = as_list(document.get("servers")) or ()
    url = (as_object(servers[0]) or {}).get("url") if servers else None
    *inner, ending = _host_in(url).rstrip(".").split(".")
    ending = ending.removesuffix(_ANYTHING)  # a base path in a variable
    labels = [label for label in inner if _ANYTHING not in label]
    if not labels or not ending.isalpha() or ending in _NOBODYS_ENDINGS:
        return []
    if len(ending) == _LETTERS_OF_A_COUNTRY and labels[-1] in _SECOND_LEVEL:
        labels.pop()
    return labels


def _host_in(url: Json) -> str:
    try:
        return urlsplit(_VARIABLE.sub(_ANYTHING, url)).hostname or "" if isinstance(url, str) else ""
    except ValueError:
        return ""


def _words(text: str) -> list[str]:
    """The words in lower case. Those of an identifier that ends in filler count one by one: ``ComputeClient``."""
    words: list[str] = []
    for word in filter(None, re.split(r"[_-]+", legal_name(_POSSESSIVE.sub("", text)))):
        parts, whole = in_words(word).split(), word.lower()
        words += parts if parts[-1] in _FILLER and whole not in _FILLER else [whole]
    return words


def _telling(words: Iterable[str]) -> list[str]:
    """The first words that are no filler, up to the next one that is."""
    return list(takewhile(lambda word: not _is_filler(word), dropwhile(_is_filler, words)))


def _is_filler(word: str, filler: AbstractSet[str] = _FILLER) -> bool:
    return word in filler or _VERSION.fullmatch(word) is not None


def _joined(words: list[str]) -> str:
    """As many of *words* as there is room for, at least the beginning of the first."""
    name = "_".join(words)[: _MAX_LENGTH + 1]
    whole, _, _ = name.rpartition("_") if len(name) > _MAX_LENGTH else (name, "", "")
    return whole or name[:_MAX_LENGTH]
