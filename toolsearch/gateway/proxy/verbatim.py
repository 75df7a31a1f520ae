"""Has servers and callbacks run calls. What a server answers is passed on whole: neither cut nor converted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.calling.admission import Admitted
from toolsearch.calling.failures import log_failure
from toolsearch.calling.pipeline import Outcome
from toolsearch.calling.tool_runner import ToolRunner
from toolsearch.errors import (
    NotCallableHereError,
    ToolExecutionError,
    ToolSearchError,
    UnapprovedToolError,
    UnknownToolError,
    text_for_model,
)
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.raw_callbacks import RawToolCallback
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.tools.blocks import text_block
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolContext
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.envelope import asks_for_input
from toolsearch.wire.mcp.eras import result_for
from toolsearch.wire.mcp.methods import CALL_TOOL
from toolsearch.wire.mcp.requests import call_params
from toolsearch.wire.mcp.results import as_error, error_result, read_result, write_result

logger = logging.getLogger(__name__)

McpReply: TypeAlias = dict[str, Any] | MCPError | NotCallableHereError


@dataclass(frozen=True, slots=True)
class VerbatimFace:
    """The `Face` of one request; *params* are those of its ``tools/call``.

    runner      runs the callbacks of tools that are of no server
    readmit     called right before a call is sent; raises ToolSearchError if it may not be sent any more
    is_by_name  whether the client has called the tool itself rather than a call tool. Then an unknown tool is answered
                with an error of the protocol, as any server would
    """

    relay: Relay
    runner: ToolRunner
    caller: Caller
    params: Mapping[str, Any]
    downstream: Downstream
    readmit: Callable[[Admitted], None]
    is_by_name: bool

    async def run(self, admitted: Admitted, context: ToolContext) -> Outcome[McpReply]:
        callback, last_look = admitted.tool.callback, _LastLook(self.readmit, admitted)
        if callback is None and admitted.tool.origin is not None:
            return await self._answered(admitted, self._by_server(admitted, last_look), last_look)
        try:
            last_look()
        except ToolSearchError as error:
            return replace(self.failed(admitted.call, error), was_run=False)
        if isinstance(callback, RawToolCallback):
            return await self._answered(admitted, self._by_raw_callback(callback, admitted), last_look)
        if callback is None:
            return _handed_back(admitted)
        outcome = await self.runner.run(admitted, context)
        return replace(self.replaced(admitted, outcome.delivered), was_run=outcome.was_run)

    def _by_server(self, admitted: Admitted, admit: Callable[[], None]) -> Coroutine[Any, Any, dict[str, Any]]:
        tool = admitted.tool
        sent = {**self.params, **call_params(tool.remote_name, admitted.arguments)}
        return self.relay.send(self.caller, tool.definition.server, CALL_TOOL, sent, self.downstream, admit)

    def _by_raw_callback(self, callback: RawToolCallback, admitted: Admitted) -> Coroutine[Any, Any, dict[str, Any]]:
        sent = {**self.params, **call_params(admitted.tool.name, admitted.arguments)}
        return callback.call_raw(sent, self.caller, self.downstream)

    async def _answered(
        self, admitted: Admitted, answer: Coroutine[Any, Any, dict[str, Any]], last_look: _LastLook
    ) -> Outcome[McpReply]:
        call = admitted.call
        try:
            raw = await answer
        except NotCallableHereError:
            return _handed_back(admitted)  # by the name and the definition that the caller knows
        except ToolSearchError as error:
            log_failure(logger, f"tool {admitted.tool.name} failed", error)
            return replace(self.failed(call, error), was_run=not last_look.has_refused)
        except MCPError as error:
            return Outcome(error, _refusal(call, error.message, ToolExecutionError.code))
        return Outcome(raw, None if asks_for_input(raw) else read_result(raw, call))

    def failed(self, call: ToolCall, error: ToolSearchError) -> Outcome[McpReply]:
        text = text_for_model(error)
        result = _refusal(call, text, error.code)
        if self.is_by_name and isinstance(error, UnknownToolError):
            return Outcome(MCPError(INVALID_PARAMS, f"Unknown tool: {error}"), result)
        if self.is_by_name and isinstance(error, UnapprovedToolError):
            return Outcome(MCPError(INVALID_PARAMS, str(error)), result)
        return Outcome(error_result(text, error.code), result)

    def replaced(self, admitted: Admitted, result: ToolResult) -> Outcome[McpReply]:  # noqa: ARG002
        """Only *result* is kept; nothing that the server sent, and in particular not its ``_meta``."""
        raw = write_result(result)
        return Outcome(
            result_for(as_error(raw, result.error_code) if result.is_error else raw, self.caller.era), result
        )


@dataclass(slots=True)
class _LastLook:
    """Calls `VerbatimFace.readmit` for an `UpstreamRequest`, and remembers whether it has refused the call."""

    readmit: Callable[[Admitted], None]
    admitted: Admitted
    has_refused: bool = field(default=False, init=False)

    def __call__(self) -> None:
        try:
            self.readmit(self.admitted)
        except ToolSearchError:
            self.has_refused = True
            raise


def _handed_back(admitted: Admitted) -> Outcome[McpReply]:
    error = NotCallableHereError(admitted.tool.definition, admitted.arguments)
    return Outcome(error, _refusal(admitted.call, str(error), error.code), was_run=False)


def _refusal(call: ToolCall, message: str, code: str) -> ToolResult:
    return ToolResult(call.id, call.name, (text_block(message),), is_error=True, error_code=code)
