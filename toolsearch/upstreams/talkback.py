"""Finds the client that a question or a log message of a server is meant for, and never a wrong one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, TypeVar

import mcp.types as types
from mcp import MCPError
from mcp.client import ClientRequestContext
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.types import INTERNAL_ERROR
from pydantic import BaseModel, ValidationError

from toolsearch.upstreams.interface import Downstream
from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.turns import Turns, is_of_a_stream, outside_of_turns
from toolsearch.wire.mcp.methods import ELICIT, LIST_ROOTS, SAMPLE

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Talkback:
    """Of one server, over all its connections.

    A message belongs to a running request. Some transports show which one, by the stream that the message came on. On
    others the message is for the client session that has requests running, or has recently cancelled one. If there are
    several such sessions, nobody is asked: the server gets an error, and from then on only one session's requests run
    at a time, so that the server's next question has one addressee.
    """

    def __init__(self, *, ask_timeout_s: float, has_clients: bool = True) -> None:
        """A question that nobody answers within *ask_timeout_s* is refused, so that it does not hold up the server.

        *has_clients* says whether there are clients that could be asked.
        """
        self._has_clients = has_clients
        self._turns = Turns()
        self._ask_timeout_s = ask_timeout_s
        self.dropped_messages = 0  # log messages that were for no client

    @property
    def asks(self) -> bool:
        """Whether requests of different sessions wait for each other, because the server does not say whom it asks."""
        return self._turns.one_session_at_a_time

    def turn(
        self, downstream: Downstream | None, *, timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[object]:
        """To be held while a request for *downstream* runs at the server; waits until it may run.

        Raises TimeoutError after *timeout_s*. The time in which the server waits for a person does not count.
        """
        return self._turns.turn(downstream, timeout_s)

    def peer(self, on_message: MessageHandlerFnT) -> SessionPeer:
        """The callbacks to open a session with. To be called in the task of the session.

        *on_message* gets every message that is not handled here.
        """
        outside_of_turns()
        self._turns.forget()

        async def hear(message: IncomingMessage) -> None:
            if isinstance(message, types.LoggingMessageNotification):
                await self._tell(message)
            else:
                await on_message(message)

        if not self._has_clients:
            return SessionPeer(on_message=hear)
        return SessionPeer(on_message=hear, elicit=self._elicit, sample=self._sample, list_roots=self._list_roots)

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        return await self._ask(ELICIT, _wire(params), types.ElicitResult)

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        del context
        expected = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return await self._ask(SAMPLE, _wire(params), expected)

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        return await self._ask(LIST_ROOTS, {}, types.ListRootsResult)

    async def _ask(self, method: str, params: Mapping[str, Any], expected: type[AnswerT]) -> AnswerT | types.ErrorData:
        turns = self._turns.meant()
        if not turns and is_of_a_stream():
            return _refused(f"{method}: the request that this belongs to is over")
        if not turns:
            self._turns.one_session_at_a_time = True
            return _refused(f"{method}: it cannot be told which client is meant; a new call will be the only one")
        downstream = turns[-1].downstream
        if downstream is None:
            return _refused(f"{method}: this request is the gateway's own, and nobody can be asked")
        with ExitStack() as paused:
            for turn in turns:
                paused.enter_context(turn.paused())
            try:
                async with asyncio.timeout(self._ask_timeout_s):
                    return expected.model_validate(await downstream.ask(method, params))
            except MCPError as error:
                return error.error
            except TimeoutError:
                return _refused(f"{method}: there was no answer within {self._ask_timeout_s:g} s")
            except ValidationError:
                return _refused(f"{method}: the client's answer is not one")

    async def _tell(self, message: types.LoggingMessageNotification) -> None:
        turns = self._turns.meant()
        downstream = turns[-1].downstream if turns else None
        if downstream is None:
            self.dropped_messages += 1
            logger.debug("a log message of a server belongs to no client")
            return
        await downstream.tell(message.method, _wire(message.params))


def _wire(params: BaseModel) -> dict[str, Any]:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _refused(reason: str) -> types.ErrorData:
    return types.ErrorData(code=INTERNAL_ERROR, message=reason)
