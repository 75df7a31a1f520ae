"""What of a request a model reads, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.anthropic.cache import MARK
from toolsearch.wire.anthropic.tools import DEFERRED
from toolsearch.wire.prompt_parts import PromptPart
from toolsearch.wire.reply_items import mapping

_FOR_THE_API = frozenset({MARK, *DEFERRED})


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    """Deferred tools are not read before something refers to them."""
    for tool in tools:
        if not _is_deferred(tool):
            yield PromptPart(_read(tool), is_end=True)
    if system:
        yield PromptPart({"system": system}, is_end=True)


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:
    """Each block of a message is a part, as marks for the cache stand on blocks. After one that refers to deferred
    *tools* their definitions follow, and only then the block has an end.
    """
    deferred = {tool["name"]: tool for tool in tools if _is_deferred(tool)}
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[JsonObject]", content)
        for block in blocks:
            loaded = [_read(deferred[name]) for name in _referred(block) if name in deferred]
            *before, last = {"role": message["role"], "content": [_read(block)]}, *loaded
            yield from (PromptPart(each, is_end=False) for each in before)
            yield PromptPart(last, is_end=True)


def _is_deferred(tool: JsonObject) -> bool:
    return DEFERRED.items() <= tool.items()


def _read(entry: JsonObject) -> JsonObject:
    return {key: value for key, value in entry.items() if key not in _FOR_THE_API}


def _referred(block: JsonObject) -> Iterator[object]:
    """The names in a result's references; an addition has the definition itself."""
    content = block.get("content")
    for each in cast("list[object]", content) if isinstance(content, list) else ():
        reference = mapping(each) or {}
        if reference.get("type") == "tool_reference":
            yield reference.get("tool_name")
