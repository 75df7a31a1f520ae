"""What may be spent on a model that writes requests."""

from __future__ import annotations

from typing import Final

from toolsearch.errors import BadSettingError
from toolsearch.wire.answers import Usage

_MOST_ANSWER_TOKENS: Final = 8_000  # of one call: a model that reasons needs more than the answer has


class Budget:
    """What may be spent, and what was.

    Within a bound of tokens, calls are made one after the other: what two at a time take is not known before.
    """

    def __init__(self, max_calls: int | None, max_tokens: int | None) -> None:
        for name, value in (("max_calls", max_calls), ("max_tokens", max_tokens)):
            if value is not None and value < 0:
                raise BadSettingError(f"{name} must be at least 0, not {value}")
        self.calls = 0  # that were begun
        self.usage = Usage()
        self._max_calls = max_calls
        self._max_tokens = max_tokens

    @property
    def is_of_tokens(self) -> bool:
        return self._max_tokens is not None

    def begin(self, sent: int, expected: int) -> int | None:
        """Count a call of *sent* tokens, and return how long its answer may be; None if it may not be made."""
        bound = max(_MOST_ANSWER_TOKENS, 2 * expected)
        if self._max_tokens is not None:
            bound = min(bound, self._max_tokens - self.usage.input_tokens - self.usage.output_tokens - sent)
        if bound < expected or (self._max_calls is not None and self.calls >= self._max_calls):
            return None
        self.calls += 1
        return bound

    def spend(self, usage: Usage) -> None:
        self.usage += usage
