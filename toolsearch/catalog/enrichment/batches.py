"""Which tools are asked for in one call, and which others are shown beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from toolsearch.catalog.enrichment.prompt import Batch
from toolsearch.catalog.enrichment.writer import TOOLS_PER_CALL
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.analysis import terms

_MOST_NEIGHBOURS = 20
_COMMON = 100  # a word that more tools of a server have tells hardly any of them apart


def batches_of(
    wanted: Iterable[ToolDefinition], everything: Iterable[ToolDefinition], *, size: int = TOOLS_PER_CALL
) -> list[Batch]:
    """Return *wanted* by *size*, by server and name, so that tools that are alike are mostly asked for together.

    Each batch has at most twenty neighbours: the tools of its servers in *everything* that share most words with one
    of its tools; ties go by name.
    """
    ordered = sorted(wanted, key=lambda each: (each.server, each.name))
    words = _Words(everything)
    parts = [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]
    return [Batch(part, words.neighbours(part)) for part in parts]


class _Words:
    """The words of the tools, by server."""

    def __init__(self, everything: Iterable[ToolDefinition]) -> None:
        self._tools: defaultdict[tuple[str, str], list[ToolDefinition]] = defaultdict(list)  # by server and word
        for each in everything:
            for word in _words(each):
                self._tools[each.server, word].append(each)

    def neighbours(self, part: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        found: dict[str, ToolDefinition] = {}
        likeness: Counter[str] = Counter()
        for tool in part:
            having = [self._tools[tool.server, word] for word in _words(tool)]
            others = [other for each in having if len(each) <= _COMMON for other in each]
            found |= {other.name: other for other in others}
            likeness |= Counter(other.name for other in others)  # of both counts, the higher one
        for tool in part:
            found.pop(tool.name, None)
        nearest = sorted(found, key=lambda name: (-likeness[name], name))
        return tuple(found[name] for name in nearest[:_MOST_NEIGHBOURS])


def _words(definition: ToolDefinition) -> frozenset[str]:
    return frozenset(terms(f"{definition.local_name} {definition.title} {definition.description}"))
