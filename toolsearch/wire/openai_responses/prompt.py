"""What of a request a model reads, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.prompt_parts import PromptPart, openai_parts

_FOR_THE_API = frozenset({"id", "status"})


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    for tool in tools:
        yield PromptPart(tool, is_end=False)
    if system:
        yield PromptPart({"instructions": system}, is_end=True)


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:  # noqa: ARG001  as in the other formats
    """Without ids and states of items. The answer to a search holds the definitions that it loads."""
    return openai_parts(
        [{key: value for key, value in item.items() if key not in _FOR_THE_API} for item in messages],
        is_user=lambda item: item.get("role") == "user",
        is_result=lambda item: str(item.get("type")).endswith("_output"),
    )
