"""What was played, in sentences for the reader of a report."""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch.bench.logged import Logged
from toolsearch.bench.transcripts import Skipped

_FLATTERY = (
    "Queries made from the tools' own words find more than those of real models do: failed turns and search rounds are "
    "a lower bound."
)
_MOST_NAMES = 5


def of_preset(name: str, *, count: int, seed: int) -> list[str]:
    return [f"{count:,} made-up conversations of the preset {name!r}, seed {seed}.", _FLATTERY]


def of_log(name: str, log: Logged, skipped: tuple[Skipped, ...]) -> list[str]:
    notes = [f"{len(log.conversations):,} conversations out of {name}."]
    if skipped:
        first = skipped[0]
        notes.append(f"{len(skipped):,} entries of it could not be read; {first.place}: {first.why}.")
    if log.guessed:
        notes.append(
            f"The log has no search for {log.guessed:,} calls; their queries were made from the tools' own words."
        )
        notes.append(_FLATTERY)
    if log.missing:
        notes.append(
            f"{sum(log.missing.values()):,} calls are of tools that are not in this catalog, and count as failed: "
            f"{_most_called(log.missing)}."
        )
    return notes


def _most_called(missing: Mapping[str, int]) -> str:
    names = sorted(missing, key=lambda name: (-missing[name], name))
    others = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + others
