"""Merging chat options: those of a request take precedence over those of its client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from toolsearch.chat.model import ChatModel, ChatOptions
from toolsearch.tools.definition import Tool
from toolsearch.tools.providers import as_tools


def merged(defaults: ChatOptions, request: ChatOptions) -> ChatOptions:
    """Return *request* with what it leaves open taken from *defaults*; neither is changed.

    Tools of both are offered, the defaults' first; contexts and extra arguments are merged, and *request* wins.
    Raises DuplicateToolError if two tools want one name.
    """
    return replace(
        request,
        model=defaults.model if request.model is None else request.model,
        temperature=defaults.temperature if request.temperature is None else request.temperature,
        max_tokens=defaults.max_tokens if request.max_tokens is None else request.max_tokens,
        tools=_union(defaults.tools, request.tools),
        deferred_tools=_union(defaults.deferred_tools, request.deferred_tools),
        tool_choice=defaults.tool_choice if request.tool_choice is None else request.tool_choice,
        tool_context={**defaults.tool_context, **request.tool_context},
        response_format=defaults.response_format if request.response_format is None else request.response_format,
        extra={**defaults.extra, **request.extra},
    )


def default_options_of(model: ChatModel) -> ChatOptions:
    """The options that *model* has for every client, if it has any."""
    options: object = getattr(model, "default_options", None)
    return options if isinstance(options, ChatOptions) else ChatOptions()


def _union(first: Iterable[Tool], second: Iterable[Tool]) -> tuple[Tool, ...]:
    return tuple(as_tools(*first, *second))
