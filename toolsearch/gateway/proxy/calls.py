"""Runs calls of tools, by name or through a call tool, in the pipeline that all calls take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolsearch.calling.admission import Admitted, Refused, admit
from toolsearch.calling.hooks import AfterCall, BeforeCall
from toolsearch.calling.inner_call import InnerCall
from toolsearch.calling.pipeline import CallPipeline
from toolsearch.calling.tool_runner import ToolRunner
from toolsearch.errors import BadArgumentsError, CallDeniedError, ToolSearchError, UnknownToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.surface import Surface
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.gateway.proxy.session_limits import SessionLimits
from toolsearch.gateway.proxy.verbatim import McpReply, VerbatimFace
from toolsearch.telemetry import Telemetry
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA
from toolsearch.wire.mcp.requests import read_call


@dataclass(frozen=True, slots=True)
class CallReply:
    """What became of a call of *name*: *delivered* is the raw result, or what `CallProxy.call` is to raise.

    *tool* is None if nothing in reach has the name; *code* is that of the error, "" if there is none.
    """

    name: str
    tool: Tool | None
    delivered: McpReply
    was_run: bool
    code: str


class CallProxy:
    """*runner* runs callbacks; *before* and *after* are hooks around each call; *limits* counts the calls of client
    sessions.
    """

    def __init__(
        self,
        surface: Surface,
        relay: Relay,
        runner: ToolRunner,
        *,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        telemetry: Telemetry | None = None,
        limits: SessionLimits | None = None,
    ) -> None:
        self._surface = surface
        self._relay = relay
        self._runner = runner
        self._pipeline = CallPipeline(before=before, after=after, telemetry=telemetry)
        self._is_reviewed = bool(before)
        self._limits = limits

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> CallReply:
        """Answer ``tools/call`` with *params* as the client sent them.

        What fails on our side is a result with ``isError``, for the model to read. What is delivered is an MCPError for
        what the server refused, as it refused it, and, as a server would, for a tool that is not there. It is a
        NotCallableHereError for a tool with neither a server nor a callback, once the call has passed everything else.
        """
        call, inner = read_call(params), None
        item: Admitted | Refused
        try:
            if inner := InnerCall.parse(call):
                call = ToolCall("", inner.name, inner.arguments)
            item = self._admitted(caller, call, inner)
            if self._limits is not None:
                item = self._limits.counted(caller, item)
        except ToolSearchError as error:
            item = Refused(call, error)
        face = VerbatimFace(
            self._relay,
            self._runner,
            caller,
            params,
            downstream,
            readmit=partial(self._readmitted, caller, inner),
            is_by_name=inner is None,
        )
        outcome = await self._pipeline.complete(item, face, _context(caller))
        if self._limits is not None and isinstance(item, Admitted) and outcome.result is not None:
            self._limits.note(caller, item, outcome.result)
        tool = item.tool if isinstance(item, Admitted) else self._surface.find(caller, call.name)
        code = outcome.result.error_code if outcome.result is not None else None
        return CallReply(call.name, tool, outcome.delivered, outcome.was_run, code or "")

    def _admitted(self, caller: Caller, call: ToolCall, inner: InnerCall | None) -> Admitted:
        """Check the call, whichever way it came: a client that was listed the tool need not have checked the
        arguments.
        """
        try:
            return admit(call, partial(self._resolve, caller, inner))
        except BadArgumentsError as error:
            if inner is None:
                raise
            raise BadArgumentsError(f"{error}; query select:{call.name} for its {INPUT_SCHEMA}") from error

    def _resolve(self, caller: Caller, inner: InnerCall | None, name: str) -> Tool:
        tool = self._surface.resolve(caller, name)
        if inner is not None:
            inner.require_allowed(tool)
        return tool

    def _readmitted(self, caller: Caller, inner: InnerCall | None, admitted: Admitted) -> None:
        """Raise ToolSearchError if *admitted* may not be sent any more.

        Connecting its server may have brought a new listing: by it the tool may await approval, be gone, be of another
        safety class, or take other arguments.
        """
        tool = admitted.tool
        now = self._resolve(caller, inner, admitted.call.name)
        if now is tool:
            return
        now = self._admitted(caller, replace(admitted.call, arguments=admitted.arguments), inner).tool
        if now.remote_name != tool.remote_name:
            raise UnknownToolError(tool.name)
        if self._is_reviewed and now != tool:
            raise CallDeniedError(
                f"the definition of {tool.name!r} has changed since the call was approved; look at it, and call again"
            )


def _context(caller: Caller) -> ToolContext:
    """What hooks and callbacks are told of who calls; nothing of it goes to a server."""
    session = caller.session or caller.session_key
    return ToolContext(principal=caller.principal.id, client=caller.client_name, session=session)
