"""Short forms in the names of tools and in what people ask for: *repo*, *db*, *PR*. Only such as mean one thing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from toolsearch_indexes.analysis import stem

# Left out, as they may be either: temp (temporary, temperature), dev, prod, req, min, sub, reg, md, ts, ml, pwd; and
# spec, since specification has the stem of specific.
_LONG_FORMS = {
    "acct": "account",
    "addr": "address",
    "admin": "administrator",
    "app": "application",
    "attr": "attribute",
    "auth": "authentication",
    "avg": "average",
    "calc": "calculate",
    "cert": "certificate",
    "cfg": "configuration",
    "cmd": "command",
    "conf": "configuration",
    "config": "configuration",
    "cred": "credential",
    "db": "database",
    "dest": "destination",
    "dir": "directory",
    "dm": "direct message",
    "doc": "document",
    "env": "environment",
    "exec": "execute",
    "func": "function",
    "img": "image",
    "info": "information",
    "k8s": "kubernetes",
    "lang": "language",
    "lat": "latitude",
    "lib": "library",
    "lng": "longitude",
    "lon": "longitude",
    "max": "maximum",
    "mongo": "mongodb",
    "mr": "merge request",
    "msg": "message",
    "num": "number",
    "org": "organization",
    "param": "parameter",
    "perms": "permission",
    "photo": "photograph",
    "pic": "picture",
    "pkg": "package",
    "postgres": "postgresql",
    "pr": "pull request",
    "qty": "quantity",
    "repo": "repository",
    "src": "source",
    "stats": "statistics",
    "sync": "synchronize",
    "tz": "timezone",
    "vid": "video",
    "vm": "virtual machine",
}


class OtherForm(NamedTuple):
    """Terms of a query, by their places, and the terms that they are short or long for; one of both is one alone."""

    places: tuple[int, ...]
    terms: tuple[str, ...]


def other_forms(terms: Sequence[str]) -> Sequence[OtherForm]:
    """The other forms of single terms, then of pairs that stand together; *terms* and what comes back are stemmed."""
    if _FIRST_TERMS.isdisjoint(terms):
        return ()
    pairs = enumerate(pairwise(terms))
    return [
        *(OtherForm((place,), other) for place, term in enumerate(terms) for other in _OTHER_FORMS.get((term,), ())),
        *(OtherForm((place, place + 1), other) for place, pair in pairs for other in _OTHER_FORMS.get(pair, ())),
    ]


def _both_ways() -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    forms: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for short, long in _LONG_FORMS.items():
        long_terms = tuple(map(stem, long.split()))
        for short_term in sorted({stem(short), stem(f"{short}s")}):  # the stemmer leaves *prs*, which has no vowel
            forms.setdefault((short_term,), []).append(long_terms)
            forms.setdefault(long_terms, []).append((short_term,))
    return forms


_OTHER_FORMS = _both_ways()
_FIRST_TERMS = frozenset(first for first, *_ in _OTHER_FORMS)  # most requests have none of them
