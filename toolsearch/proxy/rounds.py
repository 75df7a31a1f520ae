"""One reply to a client, for which the model may be asked several times: searches and the operator's tools run between.

A call runs only if the model's reply came whole. A call that stands only in a client's history never runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from toolsearch.calling.hooks import partial_results
from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.discovery.call_tools import inner_call
from toolsearch.documents.json_values import as_object, as_texts
from toolsearch.errors import CallLimitError, ChatModelError, ToolSearchError
from toolsearch.proxy.known_replies import CallersReplies, Continued
from toolsearch.proxy.request import Request
from toolsearch.proxy.upstream import Answer, Headers
from toolsearch.sessions.costs import ToolCosts
from toolsearch.sessions.unit_of_work import ConversationScope
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.events import Event, EventReader, require_size
from toolsearch.wire.native_search import found_names
from toolsearch.wire.proxied import Reply
from toolsearch.wire.proxied_parts import compact, read_object
from toolsearch.wire.reply_parts import arguments_text

_MOST_ROUNDS: Final = 3
_TOO_MANY: Final = (
    f"A reply has at most {_MOST_ROUNDS} rounds of calls, and they are used up. Answer now with your results."
)
_MOST_UNSURE: Final = 2  # tools that a search names although it is not sure of any
_EXCLUDED: Final = "The tool choice excludes this call, so it did not run. Call only tools that the choice allows."
_PING_S: Final = 10.0
_PING: Final = b": a tool is running\n\n"  # a comment, which readers of events skip

Send: TypeAlias = Callable[[bytes], AbstractAsyncContextManager[Answer]]


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is not streamed."""

    status: int
    headers: Headers
    content: bytes


@dataclass(eq=False)
class Rounds:
    """The rounds of *request*. *send* sends a body to the model, and *replies* keeps the reply that they make.

    has_run  whether a tool may have run, so that it would run again if the client sent its request again
    costs    what the model was sent of tools so far, and what it would have been sent without a search: estimates
    """

    request: Request
    send: Send
    manager: ToolCallingManager
    replies: CallersReplies
    has_run: bool = False
    costs: ToolCosts = field(init=False)
    _turn: TurnCounter = field(default_factory=TurnCounter)
    _round: int = 0
    _rest: bytes = b""  # what came of a stream after its last event

    def __post_init__(self) -> None:
        listing, revealed = self.request.listing, self.request.revealed
        self.costs = ToolCosts(1, listing.sent_tokens(revealed), 0, listing.all_tokens)

    async def streamed(self, first: Answer) -> AsyncGenerator[bytes]:
        """The stream for the client, of which *first* is the model's first answer."""
        reply = self._open_reply()
        try:
            async with aclosing(self._pieces(reply, first)) as pieces:
                async for piece in pieces:
                    yield piece
            last = reply.end()
            self._keep(reply)
            rest = b"" if reply.is_changed else self._rest
        except ToolSearchError as error:
            last, rest = reply.fail(str(error)), b""
        for event in last:
            yield self._written(event)
        if rest:
            yield rest

    async def _pieces(self, reply: Reply, answer: Answer) -> AsyncGenerator[bytes]:
        """All but the end of the stream."""
        async with AsyncExitStack() as asked:
            goes_on = True
            while goes_on:
                reader, kept = EventReader(), 0
                async for event in _events(answer, reader):
                    given = reply.add_event(event)
                    kept += 0 if given else len(event.raw)
                    require_size(kept, "calls")
                    for shown in given:
                        yield self._written(shown)
                self._rest = reader.rest
                calls = _runnable(reply)
                if not calls:
                    return
                running = asyncio.create_task(self._run(calls))
                async with aclosing(_pings(running)) as pings:
                    async for ping in pings:
                        yield ping
                goes_on = self._goes_on(reply, running.result())
                for shown in reply.end_round(running.result()):
                    yield self._written(shown)
                if goes_on:
                    await asked.aclose()
                    answer = await asked.enter_async_context(self.send(self.request.content()))
                    _require_stream(answer)

    async def whole(self, first: Answer) -> Whole:
        """The answer for the client. An answer of the model API that is an error goes to the client as it came."""
        reply = self._open_reply()
        async with AsyncExitStack() as asked:
            answer = first
            while True:
                content = await answer.content()
                value = read_object(content)
                if not answer.is_ok or value is None:
                    return Whole(answer.status, answer.headers, content)
                reply.add_whole(value)
                calls = _runnable(reply)
                if not calls:
                    break
                results = await self._run(calls)
                goes_on = self._goes_on(reply, results)
                reply.end_round(results)
                if not goes_on:
                    break
                await asked.aclose()
                answer = await asked.enter_async_context(self.send(self.request.content()))
        self._keep(reply)
        body = reply.body()
        text = compact(body) if reply.is_changed else content.decode(errors="surrogateescape")
        return Whole(first.status, first.headers, self.request.as_listed(text).encode(errors="surrogateescape"))

    def _written(self, event: Event) -> bytes:
        data = self.request.as_listed(event.data)
        return (event if data == event.data else Event(event.name, data)).written()

    def _open_reply(self) -> Reply:
        request = self.request
        return request.target.wire.open_reply(request.held, request.to_client, request.history)

    def _keep(self, reply: Reply) -> None:
        """Remember what a request has to know that continues the *reply*."""
        request = self.request
        if (stored := reply.stored) is not None:
            self.replies.put(Continued(stored, request.listing.mode, request.listing.names, request.revealed))

    def _goes_on(self, reply: Reply, results: Sequence[ToolResult]) -> bool:
        """Add the round to the conversation with the model, and say whether the model is asked again."""
        self._round += 1
        if reply.has_client_calls or self._round > _MOST_ROUNDS + 1:
            return False
        self.request.add(reply.next_entries(results), results)
        self._count(requests=1, sent_tokens=self.request.listing.sent_tokens(self.request.revealed))
        return True

    def _count(self, *, requests: int = 0, sent_tokens: int = 0, written_tokens: int = 0) -> None:
        before = self.costs
        self.costs = ToolCosts(
            before.requests + requests,
            before.sent_tokens + sent_tokens,
            before.written_tokens + written_tokens,
            before.all_tools_tokens,
        )

    async def _run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """The results of *calls*, in order; no call runs that the client's choice excludes."""
        inner = [inner_call(call, self.request.find_skill) for call in calls]
        searches = [arguments_text(call) for call in inner if call.name == TOOL_NAME]
        self._count(written_tokens=sum(map(HeuristicTokenCounter().count, searches)))
        if self._round >= _MOST_ROUNDS:
            self.request.is_free = True
            results = [_refused(call, _TOO_MANY) for call in inner]
        elif not all(self.request.may_call(call.name) for call in inner):
            results = [_refused(call, _EXCLUDED) for call in inner]
        else:
            results = await self._executed(inner)
        return list(map(_as_shown, results))

    async def _executed(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        self.has_run = self.has_run or any(call.name != TOOL_NAME for call in calls)
        scope = ConversationScope(self.request.conversation)
        try:
            return list(await self.manager.execute(calls, scope, turn=self._turn))
        except CallLimitError as error:
            return list(partial_results(error))


def _as_shown(result: ToolResult) -> ToolResult:
    """The *result* of a search as the names that it found, from which a later request can make its answer again."""
    if result.name != TOOL_NAME:
        return result
    structured = as_object(result.structured) or {}
    skills, others = as_texts(structured.get("skills")), as_texts(structured.get("alsoFound"))
    names = [*skills, *found_names(result)] or others[:_MOST_UNSURE]
    return replace(result, content=(), structured={"tools": list(names)}, is_error=False, error_code=None)


def _refused(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult(call.id, call.name, (text_block(reason),), {"tools": []}, is_error=call.name != TOOL_NAME)


def _runnable(reply: Reply) -> list[ToolCall]:
    """The calls that the proxy runs: none if the reply was cut off. Raises ChatModelError without an end."""
    if not reply.is_whole:
        raise ChatModelError("the model API ended its answer too early")
    calls = reply.own_calls
    return [] if any(call.unfinished for call in calls) else calls


def _require_stream(answer: Answer) -> None:
    if not (answer.is_ok and answer.is_stream):
        raise ChatModelError(f"the model API answered with the status {answer.status}")


async def _events(answer: Answer, reader: EventReader) -> AsyncIterator[Event]:
    async for piece in answer.pieces():
        for event in reader.add(piece):
            yield event


async def _pings(task: asyncio.Task[list[ToolResult]]) -> AsyncGenerator[bytes]:
    """A ping from time to time until *task* is done; it is cancelled if nobody waits any more."""
    try:
        while not (await asyncio.wait({task}, timeout=_PING_S))[0]:
            yield _PING
    finally:
        task.cancel()
