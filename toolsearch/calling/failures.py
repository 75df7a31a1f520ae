"""What a failed tool means for the turn: a message that the model reads, or an error that ends it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from toolsearch.errors import CallLimitError, ToolExecutionError, ToolSearchError, text_for_model
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool

_RESULTS = "__toolsearch_results__"


class ToolExecutionErrorProcessor(Protocol):
    """Decides about each tool that ran and failed. Safe to share between threads; it must not wait for anything."""

    def process(self, error: Exception, call: ToolCall, tool: Tool) -> str:
        """Return what the model is told of *error*, which is what the tool raised, or ToolTimeoutError.

        An exception raised here ends the turn. It reaches the application once the other calls of the batch are done,
        and `partial_results` gives what they came to.
        """
        ...


class DefaultToolExecutionErrorProcessor:
    """Tells the model the error's message; of an error of ours, what `text_for_model` has of it.

    always_raise  end the turn at every failure, with ToolExecutionError, whose ``__cause__`` is the tool's error; an
                  error of ours is raised as it is
    reraise       types of errors, with their subclasses, that are the application's to handle, not the model's: they
                  are raised as they are. By default every OSError that is not one of ours, since a model can do nothing
                  about a disk or a network; ``()`` has the model told of them, too
    """

    def __init__(self, *, always_raise: bool = False, reraise: Sequence[type[Exception]] | None = None) -> None:
        self._always_raise = always_raise
        self._reraise = None if reraise is None else tuple(reraise)

    def process(self, error: Exception, call: ToolCall, tool: Tool) -> str:  # noqa: ARG002  as the protocol has it
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
    """Log the code of *error*; and its message as a warning, if no model reads it."""
    if error.model_text:
        logger.warning("%s: %s: %s", what, error.code, error)
    else:
        logger.info("%s: %s", what, error.code)


def with_results(error: Exception, results: Sequence[ToolResult]) -> Exception:
    """Return *error*, carrying what the calls of its batch came to."""
    if isinstance(error, CallLimitError):
        error.results = tuple(results)
    setattr(error, _RESULTS, tuple(results))
    return error


def partial_results(error: BaseException) -> tuple[ToolResult, ...]:
    """The results of the batch that *error* ended, one per call in call order; ``()`` if it ended none."""
    return getattr(error, _RESULTS, ())
