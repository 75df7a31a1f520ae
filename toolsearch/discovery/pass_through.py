"""Decides whether a catalog is small enough to be shown whole, and remembers the decision."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolsearch.errors import BadSettingError
from toolsearch.setting_types import Natural

_RETURN_SHARE = 0.75  # share of both bounds below which a catalog that was too large is shown whole again


@dataclass(frozen=True, slots=True)
class PassThrough:
    """A small catalog is shown to the model whole, because a search would cost more than it saves.

    Both bounds have to hold. With ``max_tools=0`` everything is searched for. The defaults are about what the search
    tool itself and two searches cost.

    A list of tools that changes from whole to searched and back costs the model's prompt cache each time. So a catalog
    that has once been too large is shown whole again only when it takes at most three quarters of both bounds. And one
    that is shown whole may grow beyond both bounds by the share *slack*, which is for catalogs that change without
    their owner's doing.
    """

    max_tools: Annotated[
        Natural, Field(description="The most tools of a catalog that is shown whole; 0: always search.")
    ] = 10
    max_tokens: Annotated[
        Natural, Field(description="The most tokens of all definitions in a catalog that is shown whole.")
    ] = 1_500
    slack: float = 0.0

    def __post_init__(self) -> None:
        if self.max_tools < 0 or self.max_tokens < 0 or self.slack < 0:
            raise BadSettingError(
                f"a pass-through's bounds and slack are 0 or more; got max_tools={self.max_tools}, "
                f"max_tokens={self.max_tokens}, slack={self.slack}"
            )

    def covers(self, *, tools: int, tokens: int, was_whole: bool | None = None) -> bool:
        """Whether a catalog of that size is shown whole; *was_whole* says whether it was shown whole before, None for a
        new catalog.
        """
        share = {None: 1.0, True: 1.0 + self.slack, False: _RETURN_SHARE}[was_whole]
        return tools <= self.max_tools * share and tokens <= self.max_tokens * share


class PassThroughDecisions:
    """Decides for each rule whether one view is shown whole. Safe to share between threads.

    A decision holds for one version of the catalog. The decision on the next version depends on it.
    """

    def __init__(self) -> None:
        self._decided: dict[PassThrough, tuple[int, bool]] = {}  # rule -> version, and decision for that version
        self._lock = threading.Lock()  # not held while tokens are counted

    def is_whole(self, rule: PassThrough, version: int, *, tools: int, tokens: Callable[[], int]) -> bool:
        """Whether all *tools* in reach of that *version* of the catalog are shown.

        *tokens* is only called if their number alone does not decide it. A view without tools is shown whole, but the
        decision is not kept, since its tools are likely to come later.
        """
        if not tools:
            return True
        decided, was_whole = self._decided.get(rule, (-1, None))
        if was_whole is not None and decided >= version:
            return was_whole
        is_whole = rule.covers(tools=tools, tokens=0, was_whole=was_whole) and rule.covers(
            tools=tools, tokens=tokens(), was_whole=was_whole
        )
        with self._lock:
            decided, newer = self._decided.get(rule, (-1, None))
            if newer is not None and decided >= version:  # another thread was faster, perhaps with a newer version
                return newer
            self._decided[rule] = version, is_whole
            return is_whole
