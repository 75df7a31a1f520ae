"""Limits on calls: their number in one turn, for one tool and in total, and times and sizes that hold for every
tool.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, TypeAlias, cast, get_args

from pydantic import Field

from toolsearch.errors import BadSettingError, CallLimitError, RepeatedCallError, shown_name
from toolsearch.option_values import name_list
from toolsearch.setting_types import Count, Natural, Seconds
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.json_types import JsonObject

OnBreach: TypeAlias = Literal["error", "raise"]
Limit: TypeAlias = Natural | None

RepeatsOverrides: TypeAlias = Annotated[
    Mapping[str, Limit], Field(description="Limits of repeats for single tools, by tool name.")
]

Repeats: TypeAlias = Annotated[
    Limit,
    Field(description="Identical calls in a row that give the same result."),
]


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of the calls in one turn. None: no limit.

    excluded   tools that are neither limited nor counted
    on_breach  what a call over a limit is: an error that the model reads, or CallLimitError, raised

    A call counts as repeated only if it also gives the same result. So a model may poll a status that changes, or run
    a test again after each change. Identical calls in one reply count as one. A repeated call is always an error that
    the model reads, whatever *on_breach* says.
    """

    per_tool: Annotated[Limit, Field(description="Calls of one tool.")] = 40
    total: Annotated[Limit, Field(description="Calls of all tools.")] = 150
    per_tool_overrides: Annotated[
        Mapping[str, Limit], Field(description="Limits for single tools, by tool name, instead of `per_tool`.")
    ] = field(default_factory=dict[str, int | None])
    excluded: frozenset[str] = frozenset()
    repeats: Repeats = 3
    repeats_overrides: RepeatsOverrides = field(default_factory=dict[str, int | None])
    on_breach: OnBreach = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "excluded", frozenset(name_list(self.excluded, "excluded")))
        for name in ("per_tool", "total", "repeats"):
            _require_limit(name, getattr(self, name))
        for option in ("per_tool_overrides", "repeats_overrides"):
            overrides: object = getattr(self, option)
            if not isinstance(overrides, Mapping):
                raise BadSettingError(f"{option} must map names of tools to limits, not be {overrides!r:.80}")
            for name, limit in cast("Mapping[str, object]", overrides).items():
                _require_limit(name, limit)
        if self.on_breach not in get_args(OnBreach):
            raise BadSettingError(f"on_breach is {self.on_breach!r}; use one of {', '.join(get_args(OnBreach))}")

    def for_tool(self, name: str) -> int | None:
        return self.per_tool_overrides.get(name, self.per_tool)

    def repeats_of(self, *names: str) -> int | None:
        """The limit of a tool that is known by *names*. The override of the first name that has one counts."""
        return next((self.repeats_overrides[name] for name in names if name in self.repeats_overrides), self.repeats)


def _require_limit(name: str, limit: object) -> None:
    """A limit of NaN, say, would never be reached."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise BadSettingError(f"the call limit {name!r} is {limit!r}; use a number of 0 or more, or None for no limit")


class TurnCounter:
    """Counts the calls of one turn, over all replies of the model. Make a new one when the user speaks again.

    Not to be shared between threads.
    """

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._latest_call = ""
        self._latest_result = b""
        self._repeats_in_a_row = 0  # times in a row that the latest call gave the latest result

    def count(self, name: str, limits: CallLimits) -> None:
        """Count one call of *name*. Raises CallLimitError, and counts nothing, if *limits* leave no room for it."""
        if name in limits.excluded:
            return
        limit = limits.for_tool(name)
        if limit is not None and self._calls[name] >= limit:
            raise CallLimitError(
                f"the tool {shown_name(name)!r} may be called {limit} times a turn, and that is used up; go on with "
                "what you have"
            )
        if limits.total is not None and self._calls.total() >= limits.total:
            raise CallLimitError(
                f"{limits.total} tool calls may be made in a turn, and they are used up; answer with what you have"
            )
        self._calls[name] += 1

    def check_repeat(self, name: str, arguments: JsonObject, limits: CallLimits, *, listed_name: str = "") -> str:
        """Return the key of the call, for `note_results`; "" for one that is never a repetition. *listed_name* is the
        name that the tool would have if no settings gave it another one.

        Raises RepeatedCallError if the calls before this one were the same, and all of them gave the same result.
        """
        if name in limits.excluded:
            return ""
        key = _call_key(name, arguments)
        repeats = limits.repeats_of(name, listed_name)
        made = self._repeats_in_a_row if key == self._latest_call else 0
        if repeats is not None and made >= repeats:
            raise RepeatedCallError(
                f"{name!r} has given the same result {repeats} times in a row for these arguments; go on with that "
                "result, or call with other arguments"
            )
        return key

    def note_results(self, results: Iterable[tuple[str, ToolResult]]) -> None:
        """Note the results of the calls of one reply, each by its key, in their order. Identical calls count as one."""
        once = {key: _result_key(result) for key, result in results if key}
        for call, result in once.items():
            is_repeated = (call, result) == (self._latest_call, self._latest_result)
            self._repeats_in_a_row = self._repeats_in_a_row + 1 if is_repeated else 1
            self._latest_call, self._latest_result = call, result


# Made once, because making the encoder takes half of the time.
_sorted_json = json.JSONEncoder(sort_keys=True, default=repr).encode


def _call_key(name: str, arguments: JsonObject) -> str:
    """A key that is equal for equal arguments, whatever the order of their keys."""
    return f"{name} {_sorted_json(arguments)}"


def _result_key(result: ToolResult) -> bytes:
    """A digest is kept because results may be long."""
    content = repr((result.is_error, result.content))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How tools are called.

    At most *max_parallel* calls of one reply run at once; the others wait. Raises BadSettingError for a number that is
    not above 0.
    """

    timeout_s: Annotated[Seconds, Field(description="Time limit for one call, unless the tool sets its own.")] = 60.0
    max_parallel: int = 16
    max_threads: Annotated[
        Count, Field(description="Non-async functions that one event loop runs at the same time; others wait.")
    ] = 64
    max_result_characters: Annotated[
        Count, Field(description="Most characters of text in one result. A longer text is cut, and the result says so.")
    ] = 100_000

    def __post_init__(self) -> None:
        for option in fields(CallOptions):
            if not getattr(self, option.name) > 0:
                raise BadSettingError(f"{option.name} must be more than 0, got {getattr(self, option.name)}")
