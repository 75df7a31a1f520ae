"""Advisors stand between a client and a model, in order. Each may change requests and answers, or ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from toolsearch.chat.model import ChatModel, Prompt, closing, prompt_for
from toolsearch.errors import BadSettingError
from toolsearch.wire.answers import ChatChunk, ChatResponse

TOOL_LOOP_ORDER = 300  # memory outside the tool loop has a lower order, and memory inside it a higher one
MEMORY_ORDER = 200
CONVERSATION_ID = "conversation_id"  # the context key of the conversation's id, for memory and for tool sessions
REACH = "reach"  # the context key of the conversation's reach among the searched tools
PRINCIPAL = "principal"  # the context key of the conversation's owner, a `Principal`
TURN_MESSAGES = "turn_messages"  # the context key of the messages of this turn, since a prompt may hold only the newest
LAST_STEP = "toolsearch.last_step"  # the context key of a `LastStep`

LastStep: TypeAlias = Callable[[Prompt], Awaitable[Prompt]]
"""Takes a prompt when every advisor has had its turn, and returns it as the model is given it."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """*context* is for advisors; neither a model nor a tool sees it."""

    prompt: Prompt
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Chain(Protocol):
    """The rest of the way to the model. It may be called more than once, as the tool loop does."""

    async def call(self, request: ChatRequest) -> ChatResponse: ...

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatChunk]: ...

    @property
    def model(self) -> ChatModel: ...


class Advisor(Protocol):
    """Shared between requests, so it keeps the state of a request in local variables only."""

    @property
    def order(self) -> int:
        """A lower order comes first, and so wraps the others. Equal orders stay in the given order."""
        ...

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse: ...

    def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]: ...


def chain_of(advisors: Sequence[Advisor], model: ChatModel) -> Chain:
    """Return the chain through *advisors*, by order, to *model*. Raises BadSettingError for an invalid order."""
    for advisor in advisors:
        if not isinstance(cast("object", advisor.order), int | float):
            raise BadSettingError(f"the order of a {type(advisor).__name__} must be a number, not {advisor.order!r}")
    link: Chain = _ModelLink(model)
    for advisor in sorted(advisors, key=lambda advisor: advisor.order, reverse=True):
        link = _AdvisorLink(advisor, link)
    return link


@dataclass(frozen=True, slots=True)
class _ModelLink:
    model: ChatModel

    async def call(self, request: ChatRequest) -> ChatResponse:
        return await self.model.call(await self._prompt(request))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        async with closing(self.model.stream(await self._prompt(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _prompt(self, request: ChatRequest) -> Prompt:
        last_step = cast("LastStep | None", request.context.get(LAST_STEP))
        prompt = request.prompt if last_step is None else await last_step(request.prompt)
        return prompt_for(self.model, prompt)


@dataclass(frozen=True, slots=True)
class _AdvisorLink:
    advisor: Advisor
    rest: Chain

    @property
    def model(self) -> ChatModel:
        return self.rest.model

    async def call(self, request: ChatRequest) -> ChatResponse:
        return await self.advisor.call(request, self.rest)

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        return self.advisor.stream(request, self.rest)
