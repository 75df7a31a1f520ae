"""Runs the hooks: those before a call decide whether and how it runs, those after it may replace its result."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import cast

from toolsearch.calling.admission import Admitted
from toolsearch.calling.hooks import AfterCall, Allow, BeforeCall, Decision, Deny, Edit
from toolsearch.calling.validation import checked_arguments
from toolsearch.errors import CallDeniedError, ToolExecutionError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import Tool, ToolContext

logger = logging.getLogger(__name__)


async def decide(hooks: Sequence[BeforeCall], admitted: Admitted, context: ToolContext) -> Admitted:
    """Ask *hooks* in order, each about the arguments that the one before left, and return the call to run.

    Raises CallDeniedError, or BadArgumentsError for an edit that does not fit.
    """
    tool, arguments = admitted.tool, admitted.arguments
    for hook in hooks:
        decision = await _decision(hook, replace(admitted.call, arguments=arguments), tool, context)
        match decision:
            case Allow():
                pass
            case Deny(reason):
                raise CallDeniedError(f"the call was denied: {reason}")
            case Edit(edited):
                arguments = checked_arguments(tool.definition, edited)
    return admitted if arguments is admitted.arguments else replace(admitted, arguments=arguments)


async def _decision(hook: BeforeCall, call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
    try:
        with contained("a hook"):
            returned = hook(copy.deepcopy(call), tool, context)  # only an Edit, which is checked, changes arguments
            decision = cast("object", await returned if isawaitable(returned) else returned)
    except CallDeniedError:
        raise
    except Exception as error:
        logger.exception("a hook failed before the call of %s", tool.name)
        raise CallDeniedError("the call was denied: what had to approve it failed") from error
    if not isinstance(decision, Allow | Deny | Edit):
        logger.error("a hook returned a %s before the call of %s", type(decision).__name__, tool.name)
        raise CallDeniedError("the call was denied: what had to approve it gave no decision")
    return decision


async def revise(hooks: Sequence[AfterCall], admitted: Admitted, result: ToolResult) -> ToolResult:
    """Show *result* to *hooks* in order and return the result that the last of them left.

    Returns *result* itself if no hook replaced it. Raises ToolExecutionError if a hook failed: the result is withheld.
    """
    call, tool = admitted.call, admitted.tool
    for hook in hooks:
        try:
            with contained("a hook"):
                returned = hook(call, tool, result)
                revised = await returned if isawaitable(returned) else returned
                if revised is not None and revised is not result:
                    result = _with_true_fields(revised, call)
        except Exception as error:
            logger.exception("a hook failed after the call of %s", tool.name)
            raise ToolExecutionError(
                f"the tool {tool.name!r} ran, but its result is withheld: what had to look at it failed"
            ) from error
    return result


def _with_true_fields(result: ToolResult, call: ToolCall) -> ToolResult:
    """Return the result that a hook made, with the fields corrected that a hook must not decide."""
    code = (result.error_code or ToolExecutionError.code) if result.is_error else None
    is_direct = result.return_direct and not result.is_error
    return replace(result, call_id=call.id, name=call.name, return_direct=is_direct, error_code=code)
