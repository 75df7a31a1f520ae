"""The part of a corpus that a request or a session asks for, by rules of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolsearch.access.reach import EVERY_TOOL, Reach, RuleKind
from toolsearch.service.corpora.corpus import CorpusRef

_EVERYTHING: Final = Reach()


def asked_reach(over: CorpusRef, allow: Sequence[str], deny: Sequence[str] = ()) -> Reach:
    """Of a toolset, ``history`` in *allow* is the name that it shows a tool by. Raises BadSettingError.

    The rules of keys are about the names of catalogs, whatever is asked for here.
    """
    if not deny and tuple(allow) == EVERY_TOOL:
        return _EVERYTHING
    if over.kind == "toolset":
        allow = [rule if ":" in rule else f"{RuleKind.SHOWN.value}:{rule}" for rule in allow]
    return Reach.parse(allow, deny)
