"""What a definition says to the model beyond what its tool does: orders, secrecy, and what it wants handed over.

The phrases are in ``phrases.toml``; `tests/test_gateway_scan.py` measures what they find, and what they find wrongly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.gateway import trust
from toolsearch.gateway.trust.protocol import Finding
from toolsearch.gateway.trust.texts import Text, evidence

_re2: Any = untyped_re2
_BEFORE = 16  # bytes of context before a phrase


def steering_words(text: Text) -> Iterator[Finding]:
    """The first phrase of each kind that is meant for the model and not about the tool."""
    as_bytes = text.folded.encode(errors="replace")  # the binding is several times slower on str
    for rule, expression in _expressions().items():
        if match := expression.search(as_bytes):
            words = as_bytes[max(match.start() - _BEFORE, 0) : match.end()].decode(errors="ignore")
            yield Finding(rule, text.place, evidence(words))


@cache
def _expressions() -> Mapping[str, Any]:
    """One expression for each rule, in the order of the file."""
    document = tomllib.loads(files(trust).joinpath("phrases.toml").read_text(encoding="utf-8"))
    parts: Mapping[str, str] = document["parts"]
    return {rule["name"]: _expression(rule["phrases"], parts) for rule in document["rules"]}


def _expression(phrases: Sequence[str], parts: Mapping[str, str]) -> Any:
    text = "|".join(f"(?:{phrase})" for phrase in phrases)
    for name, part in parts.items():
        text = text.replace(f"%{name}%", part)
    options = _re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return _re2.compile(text, options)
