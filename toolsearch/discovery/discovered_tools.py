"""The tools that a session has discovered: in the order they came, under a budget, with eviction between turns.

Weak searches are noted too, so that a second one for the same is told of the first, and judged more strictly.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from pydantic import Field

from toolsearch.errors import BadSettingError
from toolsearch.setting_types import Count, Seconds
from toolsearch_indexes.analysis import terms

_BOUNDS = (
    "max_tools", "max_tokens", "ttl_s", "max_definition_tokens", "max_sent_tools", "max_sent_tokens",
    "max_skill_page_tokens", "max_skill_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the found tools that a session keeps between turns and sends to the model. None: no limit.

    When a bound is crossed, tools are evicted until only the share *low_water* (0 to 1) of every bound is used, so that
    the next turns need no eviction.

    Within a turn nothing is evicted. What a turn can add is bounded by the limit of one search, by the calls of a turn,
    and by *max_definition_tokens*: a longer definition is shortened and marked as cut; if its schema alone is longer,
    it is not shown.

    What the model has been sent already shrinks only when its provider's cache is lost anyway, so it may be more than
    the session holds. *max_sent_tools* and *max_sent_tokens* bound that as well, at the price of the cache.

    One reading of a skill has at most *max_skill_page_tokens*, and says how to read on. All readings of a conversation
    together have at most *max_skill_tokens*.
    """

    max_tools: Annotated[Count | None, Field(description="Tools that a session keeps between turns.")] = 50
    max_tokens: Annotated[Count | None, Field(description="Tokens of the kept tools' definitions.")] = 20_000
    ttl_s: Annotated[
        Seconds | None, Field(description="How long a tool is kept after it was last found or called.")
    ] = None
    low_water: float = 0.75
    max_definition_tokens: int | None = 8_000  # the longest of 6,700 real tools takes 5,800
    max_sent_tools: Annotated[Count | None, Field(description="Found tools in one request to the model.")] = (
        100  # OpenAI refuses more than 128, and an application may list tools of its own
    )
    max_sent_tokens: Annotated[
        Count | None, Field(description="Tokens of found tools' definitions in one request.")
    ] = 60_000
    max_skill_page_tokens: int | None = 8_000
    max_skill_tokens: int | None = 40_000

    def __post_init__(self) -> None:
        for name in _BOUNDS:
            bound = getattr(self, name)
            if bound is not None and not bound > 0:
                raise BadSettingError(f"{name} must be above 0, or None for no bound; got {bound}")
        if not 0 <= self.low_water <= 1:
            raise BadSettingError(f"low_water must be from 0 to 1; got {self.low_water}")

    @property
    def definition_tokens(self) -> int | None:
        """The limit for one definition: no more than the limit for all of them together."""
        return min((each for each in (self.max_definition_tokens, self.max_tokens) if each is not None), default=None)

    def is_crossed_by(self, tools: int, tokens: int, *, share: float = 1.0) -> bool:
        """Whether the count or the tokens exceed *share* of their bound."""
        return (self.max_tools is not None and tools > share * self.max_tools) or (
            self.max_tokens is not None and tokens > share * self.max_tokens
        )

    @property
    def sent(self) -> Budget:
        """The bounds of the tools that the model is sent, in the form of a budget."""
        return replace(self, max_tools=self.max_sent_tools, max_tokens=self.max_sent_tokens)


@dataclass(frozen=True, slots=True)
class DiscoveredTool:
    """The data kept of one discovered tool: the size of its definition, when and in which turn it was last found or
    called, and whether it was ever called.
    """

    tokens: int
    used_s: float
    is_called: bool = False
    turn: int = 0


class DiscoveredTools:
    """An ordered set of tool names. Safe to share between threads.

    Eviction starts with tools that were never called, and ends with tools that were found or called in this turn or the
    last one. Within each group it takes the least recently used first, then those that came first. It spares *pins*,
    tools that are being called, and tools found in the turn that ends. If those alone exceed the budget, they stay, and
    so the session is over its budget for a while. Pins count towards the budget like any other tool, since they are
    sent to the model as well.
    """

    __slots__ = ("_clock", "_found_now", "_lock", "_running", "_tools", "budget", "evicted", "pins", "turn")

    def __init__(
        self,
        budget: Budget,
        clock: Callable[[], float],
        pins: Collection[str] = (),
        tools: Mapping[str, DiscoveredTool] | None = None,
    ) -> None:
        """Start with *tools*, in their order: the discoveries of another process for the same session."""
        self.budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        self._tools = dict(tools or {})
        self._found_now: set[str] = set()
        self._running: dict[str, int] = {}  # tool -> calls that have begun and not ended
        self.pins = frozenset(pins)
        self.turn = 0  # number of turns that have ended
        self.evicted = 0  # tools evicted over all turns

    @property
    def tools(self) -> dict[str, DiscoveredTool]:
        """A copy, in append order."""
        with self._lock:
            return dict(self._tools)

    @property
    def tokens(self) -> int:
        """The tokens of all definitions together."""
        with self._lock:
            return self._total_tokens()

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def add(self, tokens_by_name: Mapping[str, int]) -> tuple[str, ...]:
        """Note that a search found these tools; return the new ones, which were appended in the given order.

        A tool that is there already stays in its place, counts as used, and takes over the given size.
        """
        now = self._clock()
        with self._lock:
            new = tuple(name for name in tokens_by_name if name not in self._tools)
            for name, tokens in tokens_by_name.items():
                is_called = name in self._tools and self._tools[name].is_called
                self._tools[name] = DiscoveredTool(tokens, now, is_called, self.turn)
            self._found_now.update(tokens_by_name)
        return new

    def touch(self, name: str) -> None:
        """Note a call of *name*; a name that is not there is ignored."""
        now = self._clock()
        with self._lock:
            self._note_call(name, now)

    def begin_call(self, name: str) -> None:
        """Note a call of *name*, and spare it until the matching `end_call`."""
        now = self._clock()
        with self._lock:
            self._running[name] = self._running.get(name, 0) + 1
            self._note_call(name, now)

    def end_call(self, name: str) -> None:
        """Note that *name* was in use until now; a call that did not begin here changes nothing else."""
        now = self._clock()
        with self._lock:
            still_running = self._running.pop(name, 0) - 1
            if still_running > 0:
                self._running[name] = still_running
            self._note_call(name, now)

    def drop(self, names: Collection[str]) -> tuple[str, ...]:
        """Forget tools that the catalog no longer has, whatever protects them; return those that were here."""
        with self._lock:
            return self._remove(names)

    def retain(self, names: Collection[str]) -> tuple[str, ...]:
        """Forget all but *names*, pins, and tools that are being called; return the removed ones, in append order."""
        with self._lock:
            kept = {*names, *self.pins, *self._running}
            return self._remove([name for name in self._tools if name not in kept])

    def merge(self, base: Mapping[str, DiscoveredTool], theirs: Mapping[str, DiscoveredTool]) -> None:
        """Merge the state of another process (*theirs*), which started from the same *base*.

        A tool that either process has removed is gone. The order is *base*, then their discoveries, then ours: the same
        in every process.
        """
        with self._lock:
            ours = self._tools
            present = [
                n for n in dict.fromkeys((*base, *theirs, *ours)) if n not in base or (n in theirs and n in ours)
            ]
            self._tools = {name: _later([tools[name] for tools in (theirs, ours) if name in tools]) for name in present}
            self._found_now.intersection_update(present)

    def keep_budget(self) -> tuple[str, ...]:
        """Evict as `end_turn` does. Within a turn nothing is done, because its end evicts."""
        return self._evict(end_turn=not self._found_now)

    def begin_turn(self) -> tuple[str, ...]:
        """Evict tools that have been idle for too long; return them in append order.

        If tools were found since the last `end_turn`, that turn is ended first, so it is enough to call one of the two.
        """
        return self._evict(end_turn=bool(self._found_now))

    def end_turn(self) -> tuple[str, ...]:
        """Evict tools that have been idle for too long or exceed the budget; return them in append order."""
        return self._evict(end_turn=True)

    def _evict(self, *, end_turn: bool) -> tuple[str, ...]:
        now = self._clock()
        with self._lock:
            spared = self.pins | self._found_now | self._running.keys()
            evictable = [name for name in self._tools if name not in spared]
            gone = {name for name in evictable if self._is_idle(name, now)}
            if end_turn:
                gone |= self._surplus([name for name in evictable if name not in gone], self.budget, without=gone)
                self._found_now.clear()
                self.turn += 1
            self.evicted += len(gone)
            return self._remove(gone)

    def keep_within(self, bounds: Budget) -> tuple[str, ...]:
        """Evict tools that exceed *bounds*, even tools found in this turn; only pins and running calls are spared."""
        with self._lock:
            spared = self.pins | self._running.keys()
            gone = self._surplus([name for name in self._tools if name not in spared], bounds)
            self.evicted += len(gone)
            return self._remove(gone)

    def _is_idle(self, name: str, now: float) -> bool:
        return self.budget.ttl_s is not None and now - self._tools[name].used_s >= self.budget.ttl_s

    def _surplus(self, evictable: Collection[str], bounds: Budget, *, without: Collection[str] = ()) -> set[str]:
        """Choose further tools to evict to meet *bounds*, once *without* is gone."""
        count = len(self._tools) - len(without)
        tokens = self._total_tokens() - sum(self._tools[name].tokens for name in without)
        surplus: set[str] = set()
        if not bounds.is_crossed_by(count, tokens):
            return surplus
        for name in sorted(evictable, key=self._use):  # the sort is stable, so ties keep their order
            if not bounds.is_crossed_by(count, tokens, share=bounds.low_water):
                break
            surplus.add(name)
            count -= 1
            tokens -= self._tools[name].tokens
        return surplus

    def _use(self, name: str) -> tuple[int, bool, float]:
        """The sort key for eviction: the lesser tool goes first."""
        tool = self._tools[name]
        turns_ago = self.turn - tool.turn
        return max(0, 2 - turns_ago), tool.is_called, tool.used_s

    def _remove(self, names: Collection[str]) -> tuple[str, ...]:
        removed = tuple(name for name in self._tools if name in names)
        for name in removed:
            del self._tools[name]
        self._found_now.difference_update(removed)
        return removed

    def _note_call(self, name: str, now: float) -> None:
        if name in self._tools:
            self._tools[name] = DiscoveredTool(self._tools[name].tokens, now, is_called=True, turn=self.turn)

    def _total_tokens(self) -> int:
        return sum(tool.tokens for tool in self._tools.values())


def _later(tools: Sequence[DiscoveredTool]) -> DiscoveredTool:
    """The tool that was used last; it counts as called if any of them was called."""
    return replace(max(tools, key=lambda tool: tool.used_s), is_called=any(tool.is_called for tool in tools))


_KEPT_SEARCHES: Final = 20
_FEWEST_TOOLS: Final = 2  # tools that similar searches must share


@dataclass(frozen=True, slots=True)
class _WeakSearch:
    """*objects* are the words after the first one, which mostly is a verb."""

    query: str
    words: frozenset[str]
    objects: frozenset[str]
    found: frozenset[str]

    @classmethod
    def of(cls, query: str, found: Collection[str]) -> _WeakSearch:
        said = list(terms(query))
        return cls(query, frozenset(said), frozenset(said[1:]), frozenset(found))

    def is_like(self, other: _WeakSearch) -> bool:
        """Whether both searches are for the same: more than half of their words are the same; or one of the objects,
        and half of the found tools.
        """
        if 2 * len(self.words & other.words) > max(len(self.words), len(other.words)):
            return True
        tools = len(self.found & other.found)
        is_same_find = tools >= _FEWEST_TOOLS and 2 * tools >= min(len(self.found), len(other.found))
        return is_same_find and not self.objects.isdisjoint(other.objects)


@dataclass(slots=True)
class WeakSearches:
    """The latest searches of a session whose answers were weak. Safe to share between threads."""

    _kept: deque[_WeakSearch] = field(default_factory=lambda: deque[_WeakSearch](maxlen=_KEPT_SEARCHES))
    _told: frozenset[str] = frozenset()

    def tells(self, servers: Collection[str]) -> bool:
        """Whether the model is to be told of *servers*: not a second time of the same ones."""
        told, self._told = self._told, frozenset(servers)
        return told != self._told

    def earlier(self, query: str, found: Collection[str]) -> str:
        """The latest search for the same in other words; "" for none."""
        asked = _WeakSearch.of(query, found)
        kept = reversed(tuple(self._kept))
        return next((each.query for each in kept if each.words != asked.words and each.is_like(asked)), "")

    def note(self, query: str, found: Collection[str]) -> None:
        asked = _WeakSearch.of(query, found)
        if all(each.words != asked.words for each in tuple(self._kept)):
            self._kept.append(asked)
