"""Scans what servers answer. Withholding a result would break the call, so suspicious results are only marked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolsearch.scanning.rules import steering_in
from toolsearch.scanning.texts import Text, texts_of
from toolsearch.tools.blocks import BLOB, DATA
from toolsearch.wire.mcp.envelope import with_meta
from toolsearch.wire.mcp.results import RESULT_WORDS

logger = logging.getLogger(__name__)

SUSPICIOUS: Final = "toolsearch/suspicious"  # in a result's ``_meta``: the names of the rules that have found something
MOST_CHARACTERS = 65_536  # of one result
_MOST_AT_ONCE = 4_096  # characters that are looked through without a thread
_NO_TEXTS = (f".{DATA}", f".{BLOB}")  # pictures, sounds and files


async def marked(server: str, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """*result* with what the scan finds in its texts in its ``_meta``; the same object if that is nothing."""
    texts = list(_texts(result))
    if sum(len(text.value) for text in texts) > _MOST_AT_ONCE:
        rules = await asyncio.to_thread(_rules, texts)
    else:
        rules = _rules(texts)
    if not rules:
        return result
    logger.warning("%s: a result of %s is suspicious: %s", server, method, ", ".join(rules))
    return with_meta(result, {SUSPICIOUS: rules})


def _rules(texts: list[Text]) -> list[str]:
    return sorted({finding.rule for found in steering_in(texts) for finding in found})


def _texts(result: Mapping[str, Any]) -> Iterator[Text]:
    left = MOST_CHARACTERS
    for text in texts_of(result):
        if left <= 0:
            return
        if text.value not in RESULT_WORDS and not text.place.endswith(_NO_TEXTS):
            yield Text(text.place, text.value[:left])
            left -= len(text.value)
