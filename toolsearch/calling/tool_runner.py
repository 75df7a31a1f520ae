"""Runs one tool by its callback, whoever asks: within its time, converted, and every failure as a result."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from toolsearch.calling.admission import Admitted
from toolsearch.calling.delivery import converted, failure
from toolsearch.calling.failures import ToolExecutionErrorProcessor, log_failure
from toolsearch.calling.pipeline import Outcome
from toolsearch.calling.running import run_tool
from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import ToolSearchError, ToolStuckError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Holds nothing of a call: one serves them all. Its fields are as in `ToolCallingManager`."""

    threads: ToolThreads
    error_processor: ToolExecutionErrorProcessor
    timeout_s: float
    max_result_characters: int

    async def run(self, admitted: Admitted, context: ToolContext) -> Outcome[ToolResult]:
        """Run the call of a tool that has a callback."""
        tool = admitted.tool
        try:
            value = await run_tool(tool, admitted.arguments, context, timeout_s=self.timeout_s, threads=self.threads)
            result = await converted(admitted, value, self.max_result_characters)
        except ToolStuckError as error:
            return self.failure(admitted.call, str(error), error, was_run=False)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is the processor's to judge
            return self._judged(admitted, error)
        return Outcome(result, result)

    def failure(
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

    def _judged(self, admitted: Admitted, error: Exception) -> Outcome[ToolResult]:
        call, tool = admitted.call, admitted.tool
        if isinstance(error, ToolSearchError):
            log_failure(logger, f"tool {tool.name} failed", error)
        else:
            logger.error("tool %s failed", tool.name, exc_info=error)
        try:
            message = self.error_processor.process(error, call, tool)
        except Exception as raised:  # noqa: BLE001  raised to the application, once the other calls are done
            return self.failure(
                call, "the tool failed, and its application has to see to that", error, ends_turn=raised
            )
        return self.failure(call, message, error)
