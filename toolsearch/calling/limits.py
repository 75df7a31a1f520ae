"""How many calls one turn may make, of one tool and in total: what ends a model that calls in circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolsearch.errors import BadSettingError, CallLimitError


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one turn. None: no limit. Tools in *excluded* are neither limited nor counted."""

    per_tool: int | None = 40
    total: int | None = 150
    per_tool_overrides: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        named = {"per_tool": self.per_tool, "total": self.total, **self.per_tool_overrides}
        for name, limit in named.items():
            if limit is not None and limit < 0:
                raise BadSettingError(f"the call limit {name!r} is {limit}; use 0 or more, or None for no limit")

    def for_tool(self, name: str) -> int | None:
        return self.per_tool_overrides.get(name, self.per_tool)


class TurnCounter:
    """The calls made since the user last spoke. One per turn; not to be shared between threads."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

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
