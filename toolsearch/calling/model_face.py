"""Runs calls for a model: each by the callback of its tool, and every failure as something that the model reads."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from toolsearch.calling.admission import Admitted
from toolsearch.calling.delivery import converted, failure
from toolsearch.calling.failures import ToolExecutionErrorProcessor, log_failure
from toolsearch.calling.pipeline import Outcome
from toolsearch.calling.running import run_tool
from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import CallLimitError, ToolSearchError, ToolStuckError, UnknownToolError, text_for_model
from toolsearch.sessions.port import ToolScope
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFace:
    """A `Face` over the tools of *scope*; *raises_limits* has a limit that is reached end the turn."""

    scope: ToolScope
    threads: ToolThreads
    error_processor: ToolExecutionErrorProcessor
    timeout_s: float
    max_result_characters: int
    raises_limits: bool

    async def run(self, admitted: Admitted, context: ToolContext) -> Outcome[ToolResult]:
        tool = admitted.tool
        try:
            self.scope.begin_call(tool.name)
        except UnknownToolError as error:
            return self._failure(admitted.call, str(error), error, was_run=False)
        try:
            value = await run_tool(tool, admitted.arguments, context, timeout_s=self.timeout_s, threads=self.threads)
            result = await converted(admitted, value, self.max_result_characters)
        except ToolStuckError as error:
            return self._failure(admitted.call, str(error), error, was_run=False)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is the processor's to judge
            return self._judged(admitted, error)
        finally:
            self.scope.end_call(tool.name)
        return Outcome(result, result)

    def failed(self, call: ToolCall, error: ToolSearchError) -> Outcome[ToolResult]:
        ends_turn = isinstance(error, CallLimitError) and self.raises_limits
        return self._failure(call, text_for_model(error), error, ends_turn=error if ends_turn else None)

    def replaced(self, admitted: Admitted, result: ToolResult) -> Outcome[ToolResult]:  # noqa: ARG002
        return Outcome(result, result)

    def _judged(self, admitted: Admitted, error: Exception) -> Outcome[ToolResult]:
        call, tool = admitted.call, admitted.tool
        if isinstance(error, ToolSearchError):
            log_failure(logger, f"tool {tool.name} failed", error)
        else:
            logger.error("tool %s failed", tool.name, exc_info=error)
        try:
            message = self.error_processor.process(error, call, tool)
        except Exception as raised:  # noqa: BLE001  raised to the application, once the other calls are done
            return self._failure(call, "the tool failed, and that ended the turn", error, ends_turn=raised)
        return self._failure(call, message, error)

    def _failure(
        self,
        call: ToolCall,
        message: str,
        error: Exception,
        *,
        was_run: bool = True,
        ends_turn: Exception | None = None,
    ) -> Outcome[ToolResult]:
        result = failure(call, message, error, self.max_result_characters)
        return Outcome(result, result, was_run=was_run, ends_turn=ends_turn)
