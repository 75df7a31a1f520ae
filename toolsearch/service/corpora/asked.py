"""Finds the catalog or toolset of a request or a page, and the part of it that is meant.

A page's address names it as ``catalog/default`` or ``toolset/support``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Final, get_args

from fastapi import Query

from toolsearch.access.reach import EVERY_TOOL, Reach, RuleKind
from toolsearch.api.base import OverCorpus
from toolsearch.errors import UnknownRecordError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusKind, CorpusRef
from toolsearch.service.web.callers import ServiceCaller, Visit
from toolsearch.service.web.parts import ServiceParts

_EVERYTHING: Final = Reach()


def asked_reach(over: CorpusRef, allow: Sequence[str], deny: Sequence[str] = ()) -> Reach:
    """For a toolset, ``history`` in *allow* is the toolset's own name of a tool. Raises BadSettingError.

    The rules of keys always use the names of catalogs.
    """
    if not deny and tuple(allow) == EVERY_TOOL:
        return _EVERYTHING
    if over.kind == "toolset":
        allow = [rule if ":" in rule else f"{RuleKind.SHOWN.value}:{rule}" for rule in allow]
    return Reach.parse(allow, deny)


def corpus_asked(body: OverCorpus, caller: ServiceCaller) -> CorpusRef:
    """The toolset of the request, or else its catalog, by default ``default``; of the caller's tenant."""
    if body.toolset is not None:
        return CorpusRef(caller.tenant, "toolset", body.toolset)
    return CorpusRef(caller.tenant, "catalog", body.catalog or "default")


CorpusPath = Annotated[str, Query(max_length=200)]
_KINDS: Final[tuple[CorpusKind, ...]] = get_args(CorpusKind)
_MOST: Final = 500  # catalogs and toolsets that a list offers


async def choices(service: ServiceParts, visit: Visit) -> list[str]:
    """Every catalog and toolset of the visitor's tenant."""
    names: list[str] = []
    for kind in _KINDS:
        records = await asyncio.to_thread(
            service.storage.records.page, visit.caller.tenant, kind, limit=_MOST, at_s=service.clock()
        )
        names += [f"{kind}/{record.id}" for record in records]
    return names


@asynccontextmanager
async def opened(service: ServiceParts, visit: Visit, name: str) -> AsyncGenerator[Corpus]:
    """The catalog or toolset of that name, while the block runs. Raises UnknownRecordError."""
    async with service[Corpora].using(ref_of(visit, name)) as corpus:
        yield corpus


def ref_of(visit: Visit, name: str) -> CorpusRef:
    """Raises UnknownRecordError if *name* is not such a name."""
    kind, _, rest = name.partition("/")
    for known in _KINDS:
        if kind == known:
            return CorpusRef(visit.caller.tenant, known, rest)
    raise UnknownRecordError("catalog", name)
