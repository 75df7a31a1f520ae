"""toolsearch in LiteLLM: a callback that sends, of a request's tools, those that the conversation asks for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Unpack

from toolsearch.engine import EngineOptions, ToolSearch
from toolsearch.errors import BadQueryError, BadToolError, MissingExtraError
from toolsearch.threads import search_threads
from toolsearch.tools.naming import TOOL_NAME, is_legal_name
from toolsearch.wire.formats import read_tool
from toolsearch.wire.tool_lists import are_deferred, chosen_names, names_in, with_cache_mark

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise MissingExtraError("the adapter for LiteLLM", "litellm") from error

_MOST_CHARACTERS = 2_000  # of one message; what is asked for stands at the end of a long one


class ToolSearchCallback(CustomLogger):
    """``litellm.callbacks = [ToolSearchCallback()]``, for Chat Completions, Messages and Responses.

    Of the tools in a request it leaves *pins*, what has been called or is chosen, and, for each message of the user,
    the *limit* that a search for it finds. That depends on the conversation alone, and only grows with it. A request
    stays as it is if its tools are few, if nothing is found, or if it has a tool search of its own.
    """

    def __init__(self, *, limit: int = 5, pins: Collection[str] = (), **options: Unpack[EngineOptions]) -> None:
        super().__init__()
        self._limit, self._pins = limit, pins
        self._engine = lru_cache(maxsize=16)(partial(_engine_over, options))

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        del call_type
        if not kwargs.get("tools") or kwargs.get("previous_response_id"):  # what was said before is not in the request
            return None
        return {**kwargs, "tools": await search_threads.run(self._needed, kwargs)}

    def _needed(self, request: Mapping[str, Any]) -> Sequence[Any]:
        tools = list(request["tools"])
        named = {name: entry for entry in tools if (name := _name(entry))}
        if TOOL_NAME in named or are_deferred(tools):
            return tools
        engine = self._engine(tuple(json.dumps(entry) for entry in named.values()))
        said = request.get("messages") or request.get("input") or ""
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        found = [name for each in messages for name in self._asked_for(engine, each) if name in named]
        if not found or engine.session("any").is_passed_through:
            return tools
        names = dict.fromkeys([*self._pins, *found, *chosen_names(request)])
        kept = with_cache_mark([named[name] for name in names if name in named], named.values())
        return [entry for entry in tools if not _name(entry)] + kept

    def _asked_for(self, engine: ToolSearch, message: Any) -> Iterator[str]:
        fields = message if isinstance(message, dict) else message.model_dump()
        if fields.get("role") == "user" and (text := _text(fields.get("content"))):
            with suppress(BadQueryError):  # it looks like a regular expression, and is none
                yield from (found.name for found in engine.search(text[-_MOST_CHARACTERS:], limit=self._limit))
        yield from names_in(fields)


def _engine_over(options: EngineOptions, entries: tuple[str, ...]) -> ToolSearch:
    return ToolSearch(map(read_tool, map(json.loads, entries)), **options)


def _name(entry: Any) -> str:
    """The name of a tool that can be searched for; "" for one of the provider's own."""
    try:
        name = read_tool(entry).name
    except (BadToolError, TypeError):
        return ""
    return name if is_legal_name(name) else ""


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)).strip()
