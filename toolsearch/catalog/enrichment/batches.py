"""Which tools are asked for in one call, and which others are shown beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from toolsearch.catalog.enrichment.prompt import Batch
from toolsearch.catalog.enrichment.writer import TOOLS_PER_CALL
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.analysis import terms

_MOST_NEIGHBOURS = 20


def batches_of(
    wanted: Iterable[ToolDefinition], everything: Iterable[ToolDefinition], *, size: int = TOOLS_PER_CALL
) -> list[Batch]:
    """Return *wanted* by *size*, by server and name, so that tools that are alike are mostly asked for together.

    Each batch has the twenty tools of its servers in *everything* that share most words with one of its tools.
    """
    ordered = sorted(wanted, key=lambda each: (each.server, each.name))
    words = {each.name: _words(each) for each in everything}
    by_server: defaultdict[str, list[ToolDefinition]] = defaultdict(list)
    for each in everything:
        by_server[each.server].append(each)
    parts = [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]
    return [Batch(part, _neighbours(part, by_server, words)) for part in parts]


def _neighbours(
    part: Sequence[ToolDefinition],
    by_server: Mapping[str, Sequence[ToolDefinition]],
    words: Mapping[str, frozenset[str]],
) -> tuple[ToolDefinition, ...]:
    names = {each.name for each in part}
    servers = dict.fromkeys(each.server for each in part)
    likeness = {
        other.name: (other, max(len(words[other.name] & words[each.name]) for each in part if each.server == server))
        for server in servers
        for other in by_server[server]
        if other.name not in names
    }
    nearest = sorted(likeness.values(), key=lambda found: (-found[1], found[0].name))
    return tuple(other for other, _ in nearest[:_MOST_NEIGHBOURS])


def _words(definition: ToolDefinition) -> frozenset[str]:
    return frozenset(terms(f"{definition.local_name} {definition.title} {definition.description}"))
