"""Finds the client that a server means when it asks or tells something, and never a wrong one."""

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

from toolsearch.upstreams.protocol import Downstream
from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.turns import Turns, is_of_a_stream, outside_of_turns
from toolsearch.wire.mcp.methods import ELICIT, LIST_ROOTS, SAMPLE

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Talkback:
    """Of one server, over all its sessions.

    What a server asks or tells belongs to a request that runs: the one on whose stream it came, where the transport
    tells, or else any of the one session that has requests running, or has cancelled one of late. Where there are
    several, nobody is asked: the server gets an error, and from then on the sessions' requests run one after the other,
    so that its next try works.
    """

    def __init__(self, *, ask_timeout_s: float, has_clients: bool = True) -> None:
        """A person may be slow, but a question that nobody sees must not hold a server for longer than that."""
        self._has_clients = has_clients
        self._turns = Turns()
        self._ask_timeout_s = ask_timeout_s
        self.dropped_messages = 0  # of the log, that nobody could be told

    @property
    def asks(self) -> bool:
        """Whether the server asks without saying whom, so that requests of different sessions wait for each other."""
        return self._turns.apart

    def turn(
        self, downstream: Downstream | None, *, timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[object]:
        """To be held while a request for *downstream* runs at the server; may wait until that can be told apart.

        Raises TimeoutError after *timeout_s*, in which the time that the server waits for a person does not count.
        """
        return self._turns.turn(downstream, timeout_s)

    def peer(self, on_message: MessageHandlerFnT) -> SessionPeer:
        """What a session is opened with, in a task made for it; *on_message* hears what is not answered here."""
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
            self._turns.apart = True
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
