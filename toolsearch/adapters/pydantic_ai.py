"""pydantic-ai: a toolset with the search tool, and a strategy for pydantic-ai's own tool search."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any

from toolsearch.adapters.conversation import for_framework, listed, next_turn, suit_model, text_and_images
from toolsearch.engine import ToolSearch
from toolsearch.errors import MissingExtraError
from toolsearch.session import Session
from toolsearch.threads import in_thread, search_threads
from toolsearch.tools.definition import ToolDefinition as OurDefinition
from toolsearch.wire.reply_parts import NO_REASON, cut_off, cut_off_by

try:
    from pydantic_ai import BinaryContent, ModelResponse, RunContext, ToolDefinition, ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise MissingExtraError("the adapter for pydantic-ai", "pydantic-ai") from error

_ANYTHING = SchemaValidator(core_schema.any_schema())  # the tool's call validates the arguments


class ToolSearchToolset(AbstractToolset[Any]):
    """The tools of *engine*, for all runs and conversations of an agent.

    session   opens the session of a run; without it, a session has the conversation's id, and sees all tools
    deferred  list all tools in reach as deferred ones, for pydantic-ai to search, in place of the search tool
    """

    def __init__(
        self, engine: ToolSearch, session: Callable[[RunContext[Any]], Session] | None = None, *, deferred: bool = False
    ) -> None:
        self._session = session or (lambda ctx: engine.session(ctx.conversation_id or ""))
        self._deferred = deferred

    @property
    def id(self) -> str:
        return "toolsearch"

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        next_turn(self._session(ctx))
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        session = suit_model(self._session(ctx), ctx.model.model_name, announces=True)
        retries = ctx.max_retries
        return {
            each.name: ToolsetTool(toolset=self, tool_def=each, max_retries=retries, args_validator=_ANYTHING)
            for each in await search_threads.run(self._listed, session, ctx.prompt)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call = self._session(ctx).call(name, tool_args, context={"run_context": ctx}, unfinished=_why_cut_off(ctx))
        result = await call
        text, images = text_and_images(result)
        if result.is_error:
            raise ToolFailed(text)
        files = [BinaryContent(b64decode(data), media_type=mime_type) for mime_type, data in images]
        return [*([text] if text else []), *files] if files else text

    def _listed(self, session: Session, said: object) -> list[ToolDefinition]:
        if self._deferred:
            with session.conversation() as conversation:
                shown = [for_framework(tool.definition) for tool in conversation.shown_tools()]
        else:
            shown = listed(session, said)
        return [
            ToolDefinition(
                name=each.name,
                description=each.description,
                parameters_json_schema=dict(each.input_schema),
                defer_loading=self._deferred,
            )
            for each in shown
        ]


def _why_cut_off(ctx: RunContext[Any]) -> str:
    """The reason for an unfinished reply, in pydantic-ai's word, or in the provider's if pydantic-ai has none."""
    replies = (message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))
    reply = next(replies, None)
    if reply is None:
        return NO_REASON
    return cut_off(reply.finish_reason) if reply.finish_reason else cut_off_by(reply.provider_details or {})


async def search_strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
    """Rank the tools that an agent has deferred: ``capabilities=[ToolSearch(strategy=search_strategy)]``."""
    return await in_thread(_best_of, queries, tools)


def _best_of(queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
    engine = _engine_over(
        tuple((each.name, each.description or "", json.dumps(each.parameters_json_schema)) for each in tools)
    )
    by_rank = zip_longest(*(engine.search(query, limit=10) for query in queries))
    return list(dict.fromkeys(found.name for found in chain.from_iterable(by_rank) if found is not None))


@lru_cache(maxsize=16)
def _engine_over(tools: tuple[tuple[str, str, str], ...]) -> ToolSearch:
    return ToolSearch([OurDefinition(name, about, json.loads(schema)) for name, about, schema in tools])
