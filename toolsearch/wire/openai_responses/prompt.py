"""What of a request a model reads, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch.tools.json_types import JsonObject

_FOR_THE_API = frozenset({"id", "status"})


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[JsonObject]:
    yield from tools
    if system:
        yield {"instructions": system}


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[JsonObject]:  # noqa: ARG001  as in the other formats
    """Without ids and states of items. The answer to a search holds the definitions that it loads."""
    for item in messages:
        yield {key: value for key, value in item.items() if key not in _FOR_THE_API}
