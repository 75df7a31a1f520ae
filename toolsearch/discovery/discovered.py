"""The tools that a session has discovered: in the order they came, under a budget, with eviction between turns.

Model providers cache a prompt by its prefix, and tool definitions stand near its front. So the order is append-only,
and tools go only between turns, many at a time: each such batch costs the session its cached prompt once (a *cache
break*).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolsearch.errors import BadSettingError
from toolsearch.setting_values import Count, Seconds, Share


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a session may hold between turns, and how much one definition may take at any time. None lifts a bound.

    When a bound is crossed, tools are evicted until only the share *low_water* (0 to 1) of every bound is used, so that
    the next turns need no eviction.

    Within a turn nothing is evicted. What a turn can add is bounded by the limit of one search, by the calls of a turn,
    and by *max_definition_tokens*: a longer definition is shortened and marked as cut; if its schema alone is longer,
    it is not shown.
    """

    max_tools: Annotated[
        Count | None, Field(description="Tools that a session keeps between turns; none: no bound.")
    ] = 50
    max_tokens: Annotated[Count | None, Field(description="Tokens of their definitions; none: no bound.")] = 20_000
    ttl_s: Annotated[
        Seconds | None, Field(description="How long a tool may be neither found nor called; none: no bound.")
    ] = None
    low_water: Annotated[Share, Field(description="Share of a crossed bound to which tools are evicted.")] = 0.75
    max_definition_tokens: Annotated[
        Count | None, Field(description="Tokens of one definition; a longer one is shortened. none: no bound.")
    ] = 8_000  # of 6,700 real tools none takes more than 5,800

    def __post_init__(self) -> None:
        for name in ("max_tools", "max_tokens", "ttl_s", "max_definition_tokens"):
            bound = getattr(self, name)
            if bound is not None and not bound > 0:
                raise BadSettingError(f"{name} must be above 0, or None for no bound; got {bound}")
        if not 0 <= self.low_water <= 1:
            raise BadSettingError(f"low_water must be from 0 to 1; got {self.low_water}")

    @property
    def definition_tokens(self) -> int | None:
        """What one definition may take: no more than all of them together."""
        return min((each for each in (self.max_definition_tokens, self.max_tokens) if each is not None), default=None)

    def is_crossed_by(self, tools: int, tokens: int, *, share: float = 1.0) -> bool:
        """Whether that much is more than *share* of either bound."""
        return (self.max_tools is not None and tools > share * self.max_tools) or (
            self.max_tokens is not None and tokens > share * self.max_tokens
        )


@dataclass(frozen=True, slots=True)
class DiscoveredTool:
    """What is kept of one discovered tool: its definition's size, and when it was last found or called."""

    tokens: int
    used_s: float


class DiscoveredTools:
    """An ordered set of tool names. Safe to share between threads.

    Eviction takes the tools that were used longest ago. It spares *pins*, tools that are being called, and tools found
    in the turn that ends. If those alone exceed the budget, they stay, and so the session is over its budget for a
    while. Pins count towards the budget like any other tool, since they are sent to the model as well.
    """

    __slots__ = ("_budget", "_clock", "_found_now", "_lock", "_running", "_tools", "cache_breaks", "evicted", "pins")

    def __init__(
        self,
        budget: Budget,
        clock: Callable[[], float],
        pins: Collection[str] = (),
        tools: Mapping[str, DiscoveredTool] | None = None,
    ) -> None:
        """Start with *tools*, in their order: what another process had discovered for the same session."""
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        self._tools = dict(tools or {})
        self._found_now: set[str] = set()
        self._running: dict[str, int] = {}  # calls that have begun and not ended
        self.pins = frozenset(pins)
        self.cache_breaks = 0  # batches of evictions and removals
        self.evicted = 0  # tools, over all turns

    @property
    def tools(self) -> dict[str, DiscoveredTool]:
        """A copy, in append order."""
        with self._lock:
            return dict(self._tools)

    @property
    def tokens(self) -> int:
        """What the definitions take together."""
        with self._lock:
            return self._total_tokens()

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def add(self, tokens_by_name: Mapping[str, int]) -> tuple[str, ...]:
        """Note that a search found these tools; return the new ones, which were appended in the given order.

        One that is there already stays in its place, counts as used, and takes over the given size.
        """
        now = self._clock()
        with self._lock:
            new = tuple(name for name in tokens_by_name if name not in self._tools)
            self._tools.update({name: DiscoveredTool(tokens, now) for name, tokens in tokens_by_name.items()})
            self._found_now.update(tokens_by_name)
        return new

    def touch(self, name: str) -> None:
        """Note a use of *name*; a name that is not there is ignored."""
        now = self._clock()
        with self._lock:
            self._note_use(name, now)

    def begin_call(self, name: str) -> None:
        """Note a use of *name*, and spare it until the matching `end_call`."""
        now = self._clock()
        with self._lock:
            self._running[name] = self._running.get(name, 0) + 1
            self._note_use(name, now)

    def end_call(self, name: str) -> None:
        """Note that *name* was in use until now; a call that did not begin here changes nothing else."""
        now = self._clock()
        with self._lock:
            still_running = self._running.pop(name, 0) - 1
            if still_running > 0:
                self._running[name] = still_running
            self._note_use(name, now)

    def drop(self, names: Collection[str]) -> tuple[str, ...]:
        """Forget tools that the catalog no longer has, whatever protects them; return those that were here."""
        with self._lock:
            return self._remove(names)

    def retain(self, names: Collection[str]) -> tuple[str, ...]:
        """Forget all but *names*, pins, and tools that are being called; return what went, in append order."""
        with self._lock:
            kept = {*names, *self.pins, *self._running}
            return self._remove([name for name in self._tools if name not in kept])

    def merge(self, base: Mapping[str, DiscoveredTool], theirs: Mapping[str, DiscoveredTool]) -> None:
        """Merge what another process has made (*theirs*) of the same *base*.

        A tool that either process has removed is gone. The order is *base*, then what they found, then what was found
        here: the same in every process.
        """
        with self._lock:
            ours = self._tools
            present = [
                n for n in dict.fromkeys((*base, *theirs, *ours)) if n not in base or (n in theirs and n in ours)
            ]
            known = {name: [tools[name] for tools in (theirs, ours) if name in tools] for name in present}
            self._tools = {name: max(tools, key=lambda tool: tool.used_s) for name, tools in known.items()}
            self._found_now.intersection_update(present)
            kept = [name for name in ours if name in self._tools]
            self.cache_breaks += present[: len(kept)] != kept  # their finds come first, so ours have moved

    def keep_budget(self) -> tuple[str, ...]:
        """Evict as `end_turn` does. If a turn is under way, its end will do that."""
        return self._evict(end_turn=not self._found_now)

    def begin_turn(self) -> tuple[str, ...]:
        """Evict what has been idle for too long; return it in append order.

        If tools were found since the last `end_turn`, that turn is ended first: it is enough to call one of the two.
        """
        return self._evict(end_turn=bool(self._found_now))

    def end_turn(self) -> tuple[str, ...]:
        """Evict what has been idle for too long or is over the budget; return it in append order."""
        return self._evict(end_turn=True)

    def _evict(self, *, end_turn: bool) -> tuple[str, ...]:
        now = self._clock()
        with self._lock:
            spared = self.pins | self._found_now | self._running.keys()
            evictable = [name for name in self._tools if name not in spared]
            gone = {name for name in evictable if self._is_idle(name, now)}
            if end_turn:
                gone |= self._surplus([name for name in evictable if name not in gone], without=gone)
                self._found_now.clear()
            self.evicted += len(gone)
            return self._remove(gone)

    def _is_idle(self, name: str, now: float) -> bool:
        return self._budget.ttl_s is not None and now - self._tools[name].used_s >= self._budget.ttl_s

    def _surplus(self, evictable: list[str], *, without: Collection[str]) -> set[str]:
        """Choose what else has to go to meet the budget, when *without* is gone."""
        count = len(self._tools) - len(without)
        tokens = self._total_tokens() - sum(self._tools[name].tokens for name in without)
        surplus: set[str] = set()
        if not self._budget.is_crossed_by(count, tokens):
            return surplus
        # The sort is stable: of tools that were used at the same time, the one that was found first is evicted first.
        for name in sorted(evictable, key=lambda name: self._tools[name].used_s):
            if not self._budget.is_crossed_by(count, tokens, share=self._budget.low_water):
                break
            surplus.add(name)
            count -= 1
            tokens -= self._tools[name].tokens
        return surplus

    def _remove(self, names: Collection[str]) -> tuple[str, ...]:
        removed = tuple(name for name in self._tools if name in names)
        for name in removed:
            del self._tools[name]
        self._found_now.difference_update(removed)
        self.cache_breaks += bool(removed)
        return removed

    def _note_use(self, name: str, now: float) -> None:
        if name in self._tools:
            self._tools[name] = DiscoveredTool(self._tools[name].tokens, now)

    def _total_tokens(self) -> int:
        return sum(tool.tokens for tool in self._tools.values())
