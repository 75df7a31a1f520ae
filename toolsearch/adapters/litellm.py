"""toolsearch in LiteLLM: a callback that sends only those tools of a request that the conversation needs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Unpack, cast
from urllib.parse import urlsplit

from toolsearch.chat.models.sdk import betas_in, with_betas
from toolsearch.engine import EngineOptions, ToolSearch
from toolsearch.errors import BadQueryError, BadToolError, MissingExtraError
from toolsearch.threads import search_threads
from toolsearch.tools.naming import TOOL_NAME, is_legal_name
from toolsearch.wire.capabilities import Capabilities, Endpoint, capabilities_of
from toolsearch.wire.formats import (
    WireFormat,
    are_deferred,
    chosen_names,
    is_answer,
    names_in,
    read_tool,
    render_change,
    said_in,
    with_cache_mark,
)
from toolsearch.wire.messages import ToolChangeMessage

try:
    from litellm import BadRequestError, get_llm_provider
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise MissingExtraError("the adapter for LiteLLM", "litellm") from error

_UNTRANSLATED = {  # (provider, call) -> format, for requests that LiteLLM does not translate
    ("anthropic", "anthropic_messages"): "anthropic",
    ("openai", "aresponses"): "openai-responses",
}
_HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}


class ToolSearchCallback(CustomLogger):
    """``litellm.callbacks = [ToolSearchCallback()]``, for Chat Completions, Messages and Responses.

    It keeps these tools of a request: *pins*, called and chosen tools, and, for each message of the user, the *limit*
    tools that a search finds. The selection depends on the conversation alone, and only grows with it. A request is not
    changed if its tools are few, if nothing is found, or if it has a tool search of its own.

    The growth depends on the model. If messages can add tools, the list has the tools found before the first answer,
    and is then fixed; other tools come in messages. Otherwise the list grows. Requests to a Claude that binds its
    thoughts to the list are not changed.
    """

    def __init__(self, *, limit: int = 5, pins: Collection[str] = (), **options: Unpack[EngineOptions]) -> None:
        super().__init__()
        self._limit, self._pins = limit, pins
        self._engine = lru_cache(maxsize=16)(partial(_engine_over, options))

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        if not kwargs.get("tools") or kwargs.get("previous_response_id"):  # earlier messages are not in the request
            return None
        return {**kwargs, **await search_threads.run(self._changes, kwargs, _endpoint(kwargs, call_type))}

    def _changes(self, request: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
        """The changed parts of *request*."""
        tools, known = list(request["tools"]), capabilities_of(endpoint)
        named = {name: entry for entry in tools if (name := _name(entry))}
        announces, chosen = "messages" in known.modes, chosen_names(request)
        if TOOL_NAME in named or are_deferred(tools) or _has_to_stay(known, chosen):
            return {}
        engine = self._engine(tuple(json.dumps(entry) for entry in named.values()))
        key = "messages" if request.get("messages") else "input"
        said = request.get(key) or ""
        entries = [{"role": "user", "content": said}] if isinstance(said, str) else list(said)
        wanted = [[name for name in self._asked_for(engine, each) if name in named] for each in entries]
        found = list(chain.from_iterable(wanted[: _answer_at(entries, 0)] if announces else wanted))
        if not found or engine.session("any").is_passed_through:
            return {}
        names = [name for name in dict.fromkeys([*self._pins, *found, *chosen]) if name in named]
        kept = with_cache_mark([named[name] for name in names], named.values())
        changes = {"tools": [entry for entry in tools if not _name(entry)] + kept}
        if not announces or len(sent := _with_additions(entries, wanted, names, named, endpoint)) == len(entries):
            return changes
        betas = betas_in(known.headers.get("messages", {}))
        return {**changes, key: sent, "extra_headers": with_betas(request.get("extra_headers") or {}, betas)}

    def _asked_for(self, engine: ToolSearch, message: Any) -> Iterator[str]:
        fields = _fields(message)
        if text := said_in(fields):
            with suppress(BadQueryError):  # the text looks like a regular expression but is not one
                yield from (found.name for found in engine.search(text, limit=self._limit))
        yield from names_in(fields)


def _has_to_stay(known: Capabilities, chosen: Collection[str]) -> bool:
    """Whether the list may not change: messages cannot add tools, or a tool choice could not name added tools."""
    return bool(chosen) if "messages" in known.modes else known.binds_thinking


def _with_additions(
    entries: Sequence[Any],
    wanted: Sequence[Iterable[str]],
    listed: Collection[str],
    named: Mapping[str, Any],
    endpoint: Endpoint,
) -> list[Any]:
    """Return *entries*, with the *wanted* tools right before each answer of the model, or at the end."""
    sent: list[Any] = []
    known, start = set(listed), 0
    while start < len(entries):
        end = _answer_at(entries, start + 1)
        new = [name for name in dict.fromkeys(chain.from_iterable(wanted[start:end])) if name not in known]
        known.update(new)
        addition = ToolChangeMessage(tuple(read_tool(named[name]) for name in new))
        sent += [*entries[start:end], *render_change(addition, cast("WireFormat", endpoint.wire_format))]
        start = end
    return sent


def _answer_at(entries: Sequence[Any], start: int) -> int:
    """The place of the model's next answer from *start* on; the end if there is none."""
    answers = (place for place in range(start, len(entries)) if is_answer(_fields(entries[place])))
    return next(answers, len(entries))


def _fields(message: Any) -> Mapping[str, Any]:
    return message if isinstance(message, dict) else message.model_dump()


def _endpoint(request: Mapping[str, Any], call_type: Any) -> Endpoint:
    """The destination and the format of *request*: LiteLLM translates it for most providers."""
    model = request.get("model") or getattr(request.get("litellm_logging_obj"), "model", "") or ""
    base = request.get("api_base") or request.get("base_url")
    provider = ""
    with suppress(BadRequestError):  # LiteLLM does not know the model
        model, provider, _, _ = get_llm_provider(model, request.get("custom_llm_provider"), base)
    wire_format = _UNTRANSLATED.get((provider, getattr(call_type, "value", call_type)))
    if wire_format and (base is None or urlsplit(base).hostname == _HOSTS[provider]):
        return Endpoint(wire_format, model)
    return Endpoint("anthropic", model, "other")  # the model's name is enough for the rules of a Claude


def _engine_over(options: EngineOptions, entries: tuple[str, ...]) -> ToolSearch:
    return ToolSearch(map(read_tool, map(json.loads, entries)), **options)


def _name(entry: Any) -> str:
    """The name of a searchable tool; "" for one of the provider's own."""
    try:
        name = read_tool(entry).name
    except (BadToolError, TypeError):
        return ""
    return name if is_legal_name(name) else ""
