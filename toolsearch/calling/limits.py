"""How many calls one turn may make, of one tool and in total: what ends a model that calls in circles."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from toolsearch.errors import BadSettingError, CallLimitError, RepeatedCallError
from toolsearch.tools.definition import JsonObject

OnBreach: TypeAlias = Literal["error", "raise"]


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one turn. None: no limit. Tools in *excluded* are neither limited nor counted.

    repeats    identical calls in a row, with no other call between: a test that runs again after each change is none
    on_breach  of a limit: "error" tells the model and goes on, "raise" ends the turn with CallLimitError. A repeated
               call is always told to the model
    """

    per_tool: int | None = 40
    total: int | None = 150
    per_tool_overrides: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    excluded: frozenset[str] = frozenset()
    repeats: int | None = 3
    on_breach: OnBreach = "error"

    def __post_init__(self) -> None:
        named = {"per_tool": self.per_tool, "total": self.total, "repeats": self.repeats, **self.per_tool_overrides}
        for name, limit in named.items():
            if limit is not None and limit < 0:
                raise BadSettingError(f"the call limit {name!r} is {limit}; use 0 or more, or None for no limit")
        if self.on_breach not in get_args(OnBreach):
            raise BadSettingError(f"on_breach is {self.on_breach!r}; use one of {', '.join(get_args(OnBreach))}")

    def for_tool(self, name: str) -> int | None:
        return self.per_tool_overrides.get(name, self.per_tool)


class TurnCounter:
    """The calls made since the user last spoke. One per turn; not to be shared between threads."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._latest = ""
        self._in_a_row = 0

    def count(self, name: str, limits: CallLimits) -> None:
        """Count one call of *name*. Raises CallLimitError, and counts nothing, if *limits* leave no room for it."""
        if name in limits.excluded:
            return
        limit = limits.for_tool(name)
        if limit is not None and self._calls[name] >= limit:
            raise CallLimitError(
                f"the tool {name!r} may be called {limit} times a turn, and that is used up; go on with what you have"
            )
        if limits.total is not None and self._calls.total() >= limits.total:
            raise CallLimitError(
                f"{limits.total} tool calls may be made in a turn, and they are used up; answer with what you have"
            )
        self._calls[name] += 1

    def count_repeat(self, name: str, arguments: JsonObject, limits: CallLimits) -> None:
        """Count a call with these arguments, in whatever order its keys are. Raises RepeatedCallError if refused."""
        if name in limits.excluded:
            return
        call = f"{name} {json.dumps(arguments, sort_keys=True, default=repr)}"
        self._in_a_row = self._in_a_row + 1 if call == self._latest else 1
        self._latest = call
        if limits.repeats is not None and self._in_a_row > limits.repeats:
            raise RepeatedCallError(
                f"{name!r} was called {limits.repeats} times in a row with these very arguments; you already have the "
                "answer, so go on with it, or call with other arguments"
            )
