"""Finds copies in an answer: tools of several servers, or of one, that say the same and fit a request equally well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from toolsearch.discovery.shown import is_near
from toolsearch.documents.json_values import as_texts
from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch.tools.naming import in_words
from toolsearch.tools.summaries import first_sentence, summary_of
from toolsearch_indexes.analysis import terms

MORE_LOOKED_AT: Final = 3  # hits beyond the limit, which take the places of copies


def grouped(
    query: str, found: Sequence[ToolReference], find: Callable[[str], Tool | None]
) -> list[list[ToolReference]]:
    """The tools *found*, best first, each with its copies behind it.

    Copies have the same letters in their own names, the same words in the first sentence of their descriptions, and the
    same required parameters. The request *query* does not tell them apart: it has no word of one server alone, and
    their scores are as near as those of tools that fit. A tool that is found by its name has no copies.
    """
    groups: list[list[ToolReference]] = []
    by_name: dict[str, list[tuple[Tool, list[ToolReference]]]] = {}
    for reference in found:
        tool = find(reference.name)
        same_name = by_name.setdefault(_own_letters(tool.definition), []) if tool is not None else []
        for best, group in same_name:
            if (
                tool is not None
                and _is_as_good(reference, group[0])
                and _say_the_same(tool.definition, best.definition)
                and not _names_server(query, tool.definition.server, beside=best.definition.server)
            ):
                group.append(reference)
                break
        else:
            groups.append([reference])
            if tool is not None:
                same_name.append((tool, groups[-1]))
    return groups


def _is_as_good(reference: ToolReference, best: ToolReference) -> bool:
    return is_near(reference.score, best.score) and reference.is_callable == best.is_callable


def _say_the_same(one: ToolDefinition, other: ToolDefinition) -> bool:
    """A sentence that says no more than the name, such as "Deletes a repository.", stands on servers of different
    things.
    """
    words = _words(one)
    return words == _words(other) and not words.issubset(terms(one.local_name)) and _required(one) == _required(other)


def _names_server(query: str, server: str, *, beside: str) -> bool:
    return not set(terms(server)).difference(terms(beside)).isdisjoint(terms(query))


def _words(definition: ToolDefinition) -> set[str]:
    return set(terms(first_sentence(summary_of(definition))))


def _required(definition: ToolDefinition) -> set[str]:
    return {_letters(name, "") for name in as_texts(definition.input_schema.get("required"))}


def _own_letters(definition: ToolDefinition) -> str:
    return _letters(definition.local_name, definition.server)


@lru_cache(maxsize=20_000)
def _letters(name: str, server: str) -> str:
    """The words of *name* that *server* does not have, or all of them if there are no others."""
    words, of_server = in_words(name).split(), in_words(server).split()
    return "".join([word for word in words if word not in of_server] or words)
