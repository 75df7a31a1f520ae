"""Which catalog or toolset a page is about: named in its address as ``catalog/default`` or ``toolset/support``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Final, get_args

from fastapi import Query

from toolsearch.errors import UnknownRecordError
from toolsearch.service.corpora.corpus import Corpus, CorpusKind, CorpusRef
from toolsearch.service.service import Service
from toolsearch.service.visits import Visit

CorpusName = Annotated[str, Query(max_length=200)]
_KINDS: Final[tuple[CorpusKind, ...]] = get_args(CorpusKind)
_MOST: Final = 500  # to choose from in a list


async def choices(service: Service, visit: Visit) -> list[str]:
    """Every catalog and toolset of the visitor's tenant."""
    names: list[str] = []
    for kind in _KINDS:
        records = await asyncio.to_thread(
            service.storage.records.page, visit.caller.tenant, kind, limit=_MOST, at_s=service.clock()
        )
        names += [f"{kind}/{record.id}" for record in records]
    return names


@asynccontextmanager
async def opened(service: Service, visit: Visit, name: str) -> AsyncGenerator[Corpus]:
    """The catalog or toolset of that name, while the block runs. Raises UnknownRecordError."""
    async with service.corpora.using(ref_of(visit, name)) as corpus:
        yield corpus


def ref_of(visit: Visit, name: str) -> CorpusRef:
    """Raises UnknownRecordError for what is no such name."""
    kind, _, rest = name.partition("/")
    for known in _KINDS:
        if kind == known:
            return CorpusRef(visit.caller.tenant, known, rest)
    raise UnknownRecordError("catalog", name)
