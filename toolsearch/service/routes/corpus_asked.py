"""Which catalog or toolset a request is over."""

from __future__ import annotations

from toolsearch.api.corpora import OverCorpus
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.corpora.corpus import CorpusRef


def corpus_asked(body: OverCorpus, caller: ServiceCaller) -> CorpusRef:
    """Its toolset, or else its catalog, which is ``default`` unless it is named; of the caller's tenant."""
    if body.toolset is not None:
        return CorpusRef(caller.tenant, "toolset", body.toolset)
    return CorpusRef(caller.tenant, "catalog", body.catalog or "default")
