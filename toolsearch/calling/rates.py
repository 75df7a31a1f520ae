"""Rates: how often something may be used in a minute, as settings say it, and buckets that count it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, Final, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from toolsearch.access.reach import EVERY_TOOL, GlobSet
from toolsearch.access.settings import AllowRules
from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_types import Count

LimitName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9 ._-]{1,64}$")]


class ToolRate(SettingsSection):
    """A limit for calls of some tools. For each principal, it counts the calls of all these tools together.

    What is None is not limited.
    """

    tools: AllowRules = Field(
        default=EVERY_TOOL,
        description="The limit applies to tools that match one of these rules; an empty list: no tool.",
    )
    principals: tuple[str, ...] = Field(
        default=("*",), min_length=1, description="Globs for the names of the limited principals."
    )
    per_minute: Count | None = Field(default=None, description="Calls in a minute; none: no limit.")
    at_once: Count | None = Field(default=None, description="Concurrent calls; none: no limit.")
    tokens_per_minute: Count | None = Field(default=None, description="Tokens of results in a minute; none: no limit.")

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        """A limit with a misspelt rule or without a number would let everything through."""
        GlobSet(self.principals)
        if self.per_minute is None and self.at_once is None and self.tokens_per_minute is None:
            raise PydanticCustomError("no_limit", "it limits nothing: set perMinute, atOnce or tokensPerMinute")
        return self


Bucket: TypeAlias = tuple[str, str]  # whose it is, and what is counted
_WINDOW_S: Final = 60.0
_ROUNDING_S: Final = 1e-6  # seconds that sums of floats may be off
_MAX_BUCKETS: Final = 50_000


class Buckets:
    """Token buckets with the allowance of a minute, which fill up within a minute.

    Each is stored as the time when it will be full again. A full bucket is forgotten. Beyond *most* buckets, the least
    recently used one is forgotten. *steady* gives seconds that only grow.
    """

    def __init__(self, steady: Callable[[], float], *, most: int = _MAX_BUCKETS) -> None:
        self._steady = steady
        self._most = most
        self._full_s: OrderedDict[Bucket, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_s)

    def take(self, bucket: Bucket, amount: int, capacity: int) -> float:
        """Take *amount* and return 0, or take nothing and return the seconds until there will be enough."""
        wait_s = self.wait_s(bucket, amount, capacity)
        if not wait_s:
            self.owe(bucket, amount, capacity)
        return wait_s

    def owe(self, bucket: Bucket, amount: int, capacity: int) -> None:
        """Take *amount*, even if there is not enough, because it was used already."""
        now_s = self._steady()
        self._full_s[bucket] = max(self._full_s.get(bucket, now_s), now_s) + amount * _WINDOW_S / capacity
        self._full_s.move_to_end(bucket)
        self._forget(now_s)

    def wait_s(self, bucket: Bucket, amount: int, capacity: int) -> float:
        """In how many seconds there will be *amount*; 0 if there is enough now."""
        now_s = self._steady()
        wait_s = max(self._full_s.get(bucket, now_s), now_s) - now_s + (amount / capacity - 1) * _WINDOW_S
        return wait_s if wait_s > _ROUNDING_S else 0.0

    def _forget(self, now_s: float) -> None:
        while self._full_s:
            oldest, full_s = next(iter(self._full_s.items()))
            if full_s > now_s and len(self._full_s) <= self._most:
                return
            del self._full_s[oldest]
