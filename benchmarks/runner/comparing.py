"""Two results of a question side by side: what has changed, and whether what can be compared has become worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import Machine, Result, read_result
from benchmarks.runner.question import Compared, Question


@dataclass(frozen=True, slots=True)
class Change:
    """Of one figure that both results have. *rule* is None for one that is shown only."""

    figure: str
    old: float
    new: float
    rule: Compared | None

    @property
    def share(self) -> float | None:
        """By how much it has grown, as a share of what it was; None from nothing."""
        return self.new / self.old - 1 if self.old else None

    def is_worse(self, tolerance: float) -> bool:
        """By more than *tolerance*, as a share of what it was, or at all where it is exact. Not a number is worse."""
        if self.rule is None:
            return False
        allowed = 0.0 if self.rule.is_exact else tolerance * abs(self.old)
        if self.rule.better == "lower":
            return not self.new <= self.old + allowed
        return not self.new >= self.old - allowed


@dataclass(frozen=True, slots=True)
class Comparison:
    """*notes* say what the two do not have in common: machine, versions, seed, and figures that one of them lacks."""

    question: str
    changes: Sequence[Change]
    notes: Sequence[str]


def compare(old: Result, new: Result, question: Question) -> Comparison:
    """Both are of *question*."""
    before, after = by_name(old.figures, question.keys), by_name(new.figures, question.keys)
    changes = [
        Change(name, value, after[name], question.rule_for(name)) for name, value in before.items() if name in after
    ]
    notes = [*_machines(old.machine, new.machine)]
    if old.seed != new.seed and old.machine is not None:
        notes.append(f"drawn with seed {old.seed}, and with {new.seed}")
    for which, some, others in (("OLD", before, after), ("NEW", after, before)):
        if alone := [name for name in some if name not in others]:
            notes.append(
                f"{len(alone)} figures are only in {which}: {', '.join(alone[:3])}{', ...' * (len(alone) > 3)}"
            )
    return Comparison(question.name, changes, notes)


def by_name(figures: Any, keys: Sequence[str]) -> dict[str, float]:
    """Numbers by where they stand, as ``sets/metatool/keyword/recall_5``.

    A row of a list goes by what it has in *keys*, as ``1000, keyword/median_ms``, and by its number where another one
    has the same. Rows without them, as samples over time, are no figures.
    """
    return dict(_numbers(figures, "", keys))


def _numbers(value: Any, name: str, keys: Sequence[str]) -> Iterator[tuple[str, float]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}/{key}".lstrip("/"), keys)
    elif isinstance(value, list):
        met: dict[str, int] = {}
        for row in value:
            if label := _label(row, keys):
                met[label] = met.get(label, 0) + 1
                number = f" #{met[label]}" if met[label] > 1 else ""
                others = {key: inner for key, inner in row.items() if key not in keys}
                yield from _numbers(others, f"{name}/{label}{number}".lstrip("/"), keys)


def _label(row: Any, keys: Sequence[str]) -> str:
    return ", ".join(str(row[key]) for key in keys if key in row) if isinstance(row, Mapping) else ""


def _machines(old: Machine | None, new: Machine | None) -> Iterator[str]:
    if old is None or new is None:
        for which, machine in (("OLD", old), ("NEW", new)):
            if machine is None:
                yield f"{which} does not say on which machine it was measured"
        return
    if _place(old) != _place(new):
        yield f"measured on {_place(old)}, and on {_place(new)}: CPU times of two machines do not compare"
    differing = [
        f"{package} {old.versions.get(package, '-')} and {new.versions.get(package, '-')}"
        for package in sorted(old.versions.keys() | new.versions.keys())
        if old.versions.get(package) != new.versions.get(package)
    ]
    if differing:
        yield f"measured with {', '.join(differing)}"


def _place(machine: Machine) -> str:
    return f"{machine.cpu} ({machine.cores} cores, {machine.memory_gib:g} GiB, Python {machine.python})"


class NothingToCompareError(Exception):
    """The message says why."""


def comparisons(old: Path, new: Path, questions: Sequence[Question]) -> tuple[list[Comparison], list[str]]:
    """Of two files, or of the files of the same name in two folders; and what could not be compared.

    Raises NothingToCompareError if they are not of the same questions, and ValueError for a file that cannot be read.
    """
    pairs, left_out = _pairs(old, new)
    compared: list[Comparison] = []
    for before, after in pairs:
        first, second = read_result(before), read_result(after)
        one, other = (_question(result, path, questions) for result, path in ((first, before), (second, after)))
        if one != other:
            raise NothingToCompareError(f"{before} answers {one.name}, and {after} answers {other.name}")
        compared.append(compare(first, second, one))
    return compared, left_out


def _pairs(old: Path, new: Path) -> tuple[list[tuple[Path, Path]], list[str]]:
    for path in (old, new):
        if not path.exists():
            raise NothingToCompareError(f"there is no {path}")
    if old.is_dir() != new.is_dir():
        raise NothingToCompareError("give two files, or two folders")
    if not old.is_dir():
        return [(old, new)], []
    before, after = ({path.name: path for path in sorted(folder.glob("*.json"))} for folder in (old, new))
    alone = [f"{name} is only in {old}" for name in before if name not in after]
    alone += [f"{name} is only in {new}" for name in after if name not in before]
    return [(path, after[name]) for name, path in before.items() if name in after], alone


def _question(result: Result, path: Path, questions: Sequence[Question]) -> Question:
    for question in questions:
        if result.question in (question.name, question.file):
            return question
    raise NothingToCompareError(f"{path} answers {result.question!r}, which is no question of this runner")
