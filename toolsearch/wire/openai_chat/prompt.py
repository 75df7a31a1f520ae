"""What of a request a model reads, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch.tools.json_types import JsonObject


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[JsonObject]:
    yield from tools
    if system:
        yield {"role": "system", "content": system}


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[JsonObject]:  # noqa: ARG001  as in the other formats
    """As they are sent, without what is null."""
    for message in messages:
        yield {key: value for key, value in message.items() if value is not None}
