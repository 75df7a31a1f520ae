"""What of a request a model reads, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.prompt_parts import PromptPart, openai_parts


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    for tool in tools:
        yield PromptPart(tool, is_end=False)
    if system:
        yield PromptPart({"role": "system", "content": system}, is_end=True)


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:  # noqa: ARG001  as in the other formats
    """As they are sent, without what is null."""
    return openai_parts(
        [{key: value for key, value in message.items() if value is not None} for message in messages],
        is_user=lambda message: message["role"] == "user",
        is_result=lambda message: message["role"] == "tool",
    )
