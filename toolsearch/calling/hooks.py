"""The application's control over a call: hooks before and after it, and the handling of failures.

A hook may stop a call or change its arguments or its result; a failure is a message to the model, or ends the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast

from toolsearch.errors import BadSettingError, CallLimitError, ToolExecutionError, ToolSearchError, text_for_model
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject

HookType = TypeVar("HookType")


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the call through. Other hooks may still stop it."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run the call; the model reads *reason*."""

    reason: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Run the call with these arguments instead, if they fit the tool's schema."""

    arguments: JsonObject


Decision: TypeAlias = Allow | Deny | Edit


class BeforeCall(Protocol):
    """Decides about a call that is otherwise ready to run: its tool is known, its arguments are an object and fit.

    Plain or async; a plain one must not wait. No timeout holds here, since a person may take minutes, and calls of one
    batch come through at the same time. *context* is the object that the tool will get. A hook that raises, or returns
    anything but a `Decision`, denies the call.
    """

    def __call__(self, call: ToolCall, tool: Tool, context: ToolContext, /) -> Decision | Awaitable[Decision]: ...


class AfterCall(Protocol):
    """Sees the result of each call that ran, failed ones too, and may replace it.

    Plain or async, and not under the tool's timeout. If it raises, the result is withheld, because the hook may exist
    to remove secrets from results.
    """

    def __call__(
        self, call: ToolCall, tool: Tool, result: ToolResult, /
    ) -> ToolResult | Awaitable[ToolResult | None] | None: ...


def checked_hooks(given: Iterable[HookType], option: str) -> tuple[HookType, ...]:
    """Return *given* as a tuple. Raises BadSettingError for anything but a list of functions."""
    value = cast("object", given)
    hooks = tuple(given) if isinstance(value, Iterable) else None
    if hooks is None or not all(callable(hook) for hook in hooks):
        raise BadSettingError(f"{option} must be a list of functions; write {option}=[function]")
    return hooks


_RESULTS = "__toolsearch_results__"


class ToolExecutionErrorProcessor(Protocol):
    """Decides about each tool that ran and failed. Safe to share between threads; it must not wait for anything."""

    def process(self, error: Exception, call: ToolCall, tool: Tool) -> str:
        """Return the text for the model about *error*, which the tool raised or which is a ToolTimeoutError.

        An exception raised here ends the turn. It reaches the application once the other calls of the batch are done,
        and `partial_results` gives their results.
        """
        ...


class DefaultToolExecutionErrorProcessor:
    """Tells the model the error's message; for an error of ours, the text of `text_for_model`.

    always_raise  end the turn at every failure, with ToolExecutionError, whose ``__cause__`` is the tool's error; an
                  error of ours is raised as it is
    reraise       types of errors, with their subclasses, that are the application's to handle, not the model's: they
                  are raised as they are. By default every OSError that is not one of ours, since a model can do nothing
                  about a disk or a network; ``()`` has the model told of them, too
    """

    def __init__(self, *, always_raise: bool = False, reraise: Sequence[type[Exception]] | None = None) -> None:
        self._always_raise = always_raise
        self._reraise = None if reraise is None else tuple(reraise)

    # The protocol has this parameter.
    def process(self, error: Exception, call: ToolCall, tool: Tool) -> str:  # noqa: ARG002
        if self._is_for_the_application(error):
            raise error
        message = text_for_model(error).strip() or f"Exception occurred in tool: {tool.name} ({type(error).__name__})"
        if not self._always_raise:
            return message
        if isinstance(error, ToolSearchError):
            raise error
        raise ToolExecutionError(message) from error

    def _is_for_the_application(self, error: Exception) -> bool:
        if self._reraise is None:
            return isinstance(error, OSError) and not isinstance(error, ToolSearchError)
        return isinstance(error, self._reraise)


def log_failure(logger: logging.Logger, what: str, error: ToolSearchError) -> None:
    """Log the code of *error*. Also log its message as a warning, if no model reads it."""
    if error.model_text:
        logger.warning("%s: %s: %s", what, error.code, error)
    else:
        logger.info("%s: %s", what, error.code)


def with_results(error: Exception, results: Sequence[ToolResult]) -> Exception:
    """Return *error* with the results of its batch attached."""
    if isinstance(error, CallLimitError):
        error.results = tuple(results)
    setattr(error, _RESULTS, tuple(results))
    return error


def partial_results(error: BaseException) -> tuple[ToolResult, ...]:
    """The results of the batch that *error* ended, one per call in call order; ``()`` if it ended none."""
    return getattr(error, _RESULTS, ())
