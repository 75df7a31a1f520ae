"""Runs calls for a model: each by the callback of its tool, and every failure as something that the model reads."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.calling.admission import Admitted
from toolsearch.calling.pipeline import Outcome
from toolsearch.calling.tool_runner import ToolRunner
from toolsearch.errors import CallLimitError, ToolSearchError, UnknownToolError, text_for_model
from toolsearch.sessions.port import ToolScope
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolContext


@dataclass(frozen=True, slots=True)
class ModelFace:
    """A `Face` over the tools of *scope*; *raises_limits* has a limit that is reached end the turn."""

    scope: ToolScope
    runner: ToolRunner
    raises_limits: bool

    async def run(self, admitted: Admitted, context: ToolContext) -> Outcome[ToolResult]:
        name = admitted.tool.name
        try:
            self.scope.begin_call(name)
        except UnknownToolError as error:
            return self.runner.failure(admitted.call, str(error), error, was_run=False)
        try:
            return await self.runner.run(admitted, context)
        finally:
            self.scope.end_call(name)

    def failed(self, call: ToolCall, error: ToolSearchError) -> Outcome[ToolResult]:
        ends_turn = isinstance(error, CallLimitError) and self.raises_limits
        return self.runner.failure(call, text_for_model(error), error, ends_turn=error if ends_turn else None)

    def replaced(self, admitted: Admitted, result: ToolResult) -> Outcome[ToolResult]:  # noqa: ARG002
        return Outcome(result, result)
