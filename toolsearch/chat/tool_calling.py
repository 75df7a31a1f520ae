"""The tool loop: ask the model, run the tools it calls, ask again with their results, until it answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools, ToolCallbackResolver
from toolsearch.chat.advisor import TOOL_LOOP_ORDER, TURN_MESSAGES, Chain, ChatRequest
from toolsearch.chat.model import ChatOptions, Prompt, closing
from toolsearch.errors import BadSettingError, CallLimitError
from toolsearch.sessions.port import ToolScope
from toolsearch.tools.calls import ToolCall, ToolResult, returns_directly
from toolsearch.wire.answers import ChatChunk, ChatResponse, ChunkAggregator, FinishReason, Usage, last_chunk
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage

logger = logging.getLogger(__name__)

_MAX_UNFINISHED_ROUNDS = 3  # each is paid for, and a model whose replies are too short writes the next one just as long


def wants_tools(response: ChatResponse) -> bool:
    """The default eligibility: a response's calls are run if it has any."""
    return bool(response.message.tool_calls)


class ToolCallingAdvisor:
    """Runs the tool calls of a model for as long as it makes any; a chain has exactly one such advisor.

    manager               runs the calls; by default one with its own defaults
    conversation_history  whether each request of the loop contains the whole turn. Without it, a request contains the
                          system message and the newest results, for a memory inside the loop to complete
    eligibility           whether the calls of a response are run; otherwise the loop ends, and the caller runs them
    max_rounds            model requests in one turn; a model that never stops asking is stopped there
    resolver              looks up tools that a model calls although they were not attached; None means no look-up

    The response's usage is the sum of all rounds. Its `steps` are the messages that led to it. It ends with
    "return_direct" if each call of a round returns directly. It ends with "call_limit", and a text that says so, if
    *max_rounds* or a limit of the manager that raises is reached. A `tool_choice` that forces calls is for one round.
    Calls of an unfinished reply are not run, and the model is told. After 3 such replies in a row the turn ends with
    "call_limit" as well.

    A subclass overrides the steps below, which are in order. Data of one request belongs into its context, since the
    advisor serves many at once.
    """

    def __init__(
        self,
        manager: ToolCallingManager | None = None,
        *,
        order: int = TOOL_LOOP_ORDER,
        conversation_history: bool = True,
        eligibility: Callable[[ChatResponse], bool] = wants_tools,
        max_rounds: int = 100,
        resolver: ToolCallbackResolver | None = None,
    ) -> None:
        if max_rounds < 1:
            raise BadSettingError(f"max_rounds must be 1 or more, got {max_rounds}")
        self.manager = manager or ToolCallingManager()
        self._order = order
        self._conversation_history = conversation_history
        self._eligibility = eligibility
        self._max_rounds = max_rounds
        self._resolver = resolver

    @property
    def order(self) -> int:
        return self._order

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse:
        turn = _Turn(self, await self.initialize(request, chain))
        try:
            while True:
                answer = await turn.take(await chain.call(await turn.ask()))
                if answer is not None:
                    return answer
        finally:
            await self.finalize(turn.request)

    async def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]:
        """Text is passed on as it comes, from every round; the last piece tells how the turn ended.

        Calls are not passed on as pieces. Calls that were run are in `steps`, the others in the message.
        """
        turn = _Turn(self, await self.initialize(request, chain))
        try:
            while True:
                pieces = ChunkAggregator()
                async with closing(chain.stream(await turn.ask())) as chunks:
                    async for chunk in chunks:
                        pieces.add(chunk)
                        if chunk.text:
                            yield ChatChunk(text=chunk.text)
                answer = await turn.take(pieces.response())
                if answer is not None:
                    yield last_chunk(answer, text=answer.text if answer.finish_reason in _ENDED_BY_LOOP else "")
                    return
        finally:
            await self.finalize(turn.request)

    # The steps of a turn

    async def initialize(self, request: ChatRequest, chain: Chain) -> ChatRequest:  # noqa: ARG002  subclasses use it
        """Prepare a turn; once this has returned, `finalize` is sure to be called."""
        return request

    async def opening(self, request: ChatRequest) -> Sequence[Message]:  # noqa: ARG002  subclasses use it
        """Return messages to add to *request* before the first round; they belong to the turn."""
        return ()

    async def before_round(self, request: ChatRequest) -> ChatRequest:
        """Return the request for this round. *request* has the whole turn so far, and the next round builds on the
        result.
        """
        return request

    def next_messages(self, request: ChatRequest) -> tuple[Message, ...]:
        """Return the messages of *request*, the whole turn, that are sent in a round after the first."""
        messages = request.prompt.messages
        if self._conversation_history:
            return messages
        newest = max(place for place, message in enumerate(messages) if isinstance(message, ToolMessage))
        return (*(message for message in messages[:newest] if isinstance(message, SystemMessage)), *messages[newest:])

    async def after_round(self, request: ChatRequest, response: ChatResponse) -> ChatResponse:  # noqa: ARG002
        """Return the model's *response* to *request* in the form that the loop should use."""
        return response

    def scope(self, request: ChatRequest) -> ToolScope:
        """Return the tools that the calls of this round may run: those that *request* attached."""
        return AttachedTools(request.prompt.options.tools, self._resolver, fallback=self._resolver is not None)

    def calls_to_run(self, request: ChatRequest, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:  # noqa: ARG002
        """Return the calls to run for *calls*, in their order and with their ids."""
        return calls

    async def after_calls(
        self,
        request: ChatRequest,  # noqa: ARG002
        calls: Sequence[ToolCall],  # noqa: ARG002
        results: Sequence[ToolResult],  # noqa: ARG002
    ) -> Sequence[Message]:
        """Note the *results* of one round's *calls*, as they were run; results are in the order of the calls.

        The returned messages follow the results, and belong to the turn.
        """
        return ()

    async def finalize(self, request: ChatRequest) -> None:
        """End the turn, however it ended: answered, returned directly, stopped, failed, cancelled, or left."""

    # Members for `_Turn`

    def sent(self, request: ChatRequest, *, is_first: bool) -> ChatRequest:
        """Return *request* in the form that is sent to the model."""
        if is_first and self._conversation_history:
            return request
        messages = request.prompt.messages if is_first else self.next_messages(request)
        context = request.context if self._conversation_history else {
            **request.context, TURN_MESSAGES: request.prompt.messages,
        }  # fmt: skip
        return replace(request, prompt=replace(request.prompt, messages=messages), context=context)

    def is_eligible(self, response: ChatResponse) -> bool:
        return bool(response.message.tool_calls) and self._eligibility(response)

    @property
    def max_rounds(self) -> int:
        return self._max_rounds


# The loop itself ended these turns, so nothing of the answer was streamed.
_ENDED_BY_LOOP: tuple[FinishReason, ...] = ("return_direct", "call_limit")


class _Turn:
    """The state of one request in the loop. *request* contains all messages so far."""

    def __init__(self, advisor: ToolCallingAdvisor, request: ChatRequest) -> None:
        self.request = request
        self._advisor = advisor
        self._calls = TurnCounter()
        self._rounds = 0
        self._unfinished_rounds = 0  # counted in a row
        self._usage = Usage()
        self._steps: tuple[Message, ...] = ()

    async def ask(self) -> ChatRequest:
        """Return the next request to the model."""
        if not self._rounds:
            self._add(*await self._advisor.opening(self.request))
        self.request = await self._advisor.before_round(self.request)
        self._rounds += 1
        return self._advisor.sent(self.request, is_first=self._rounds == 1)

    async def take(self, response: ChatResponse) -> ChatResponse | None:
        """Return the answer of the turn if *response* ends it. Otherwise run its calls and return None."""
        response = await self._advisor.after_round(self.request, response)
        self._usage += response.usage
        if not self._advisor.is_eligible(response):
            return replace(response, usage=self._usage, steps=self._steps)
        calls = self._advisor.calls_to_run(self.request, response.message.tool_calls)
        try:
            results = await self._run(calls)
        except CallLimitError as error:
            self._add(response.message, ToolMessage(tuple(error.results)))
            return self._stopped(response, error)
        self._add(response.message, ToolMessage(tuple(results)))
        self._add(*(await self._advisor.after_calls(self.request, calls, results) or ()))
        logger.debug("round %d: %d tool calls", self._rounds, len(calls))
        if returns_directly(results):
            return self._direct(response, results)
        limit = self._limit_reached(calls)
        return self._stopped(response, limit) if limit is not None else None

    def _limit_reached(self, calls: Sequence[ToolCall]) -> CallLimitError | None:
        is_unfinished = all(call.unfinished for call in calls)
        self._unfinished_rounds = self._unfinished_rounds + 1 if is_unfinished else 0
        if self._unfinished_rounds >= _MAX_UNFINISHED_ROUNDS:
            return CallLimitError(
                f"{self._unfinished_rounds} replies of the model in a row broke off in their tool calls "
                f"({calls[0].unfinished}), so no call was run; let replies be longer with ChatOptions.max_tokens"
            )
        if self._rounds >= self._advisor.max_rounds:
            return CallLimitError(f"the model was asked {self._rounds} times without an answer")
        return None

    async def _run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        return await self._advisor.manager.execute(
            calls,
            self._advisor.scope(self.request),
            context=self.request.prompt.options.tool_context,
            turn=self._calls,
        )

    def _add(self, *messages: Message) -> None:
        """Go on with *messages*. Once the model has called, it is free to answer."""
        self._steps += messages
        prompt = self.request.prompt
        options = _unforced(prompt.options) if self._rounds else prompt.options
        self.request = replace(self.request, prompt=Prompt(prompt.messages + messages, options))

    def _direct(self, response: ChatResponse, results: Sequence[ToolResult]) -> ChatResponse:
        text = "\n".join(result.text for result in results)
        metadata = {**response.metadata, "results": tuple(results)}
        return ChatResponse(AssistantMessage(text), "return_direct", self._usage, metadata=metadata, steps=self._steps)

    def _stopped(self, response: ChatResponse, limit: CallLimitError) -> ChatResponse:
        logger.info("tool loop stopped: %s", limit)
        message = AssistantMessage(str(limit))
        return ChatResponse(message, "call_limit", self._usage, metadata=response.metadata, steps=self._steps)


def _unforced(options: ChatOptions) -> ChatOptions:
    """A choice that forces calls holds for one round: a model that must always call can never answer."""
    return options if options.tool_choice in ("auto", "none", None) else replace(options, tool_choice=None)
