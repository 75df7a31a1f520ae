"""What a question to measure is: what it asks, what it needs, and which of its figures can be compared."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Need:
    """Something without which a question cannot be asked; *remedy* says how to get it."""

    what: str
    is_met: Callable[[], bool]
    remedy: str


def installed(module: str, remedy: str) -> Need:
    return Need(module, lambda: importlib.util.find_spec(module) is not None, remedy)


def package(module: str, extra: str) -> Need:
    return installed(module, f"pip install -e '.[{extra}]'")


def program(name: str) -> Need:
    return Need(name, lambda: shutil.which(name) is not None, f"install {name}, so that it is on the PATH")


def there(what: str, path: Path, remedy: str, *, holds: str | None = None) -> Need:
    """A file or folder; with *holds*, one that has a file of this pattern."""
    return Need(what, lambda: any(path.glob(holds)) if holds else path.exists(), remedy)


def asked_for(options: str) -> Need:
    """What only who runs it can say."""
    return Need(f"your own {options}", lambda: False, f"run it by itself, with {options}")


Direction = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Compared:
    """Figures that say whether a version is better than another one, wherever the machine has something else to do.

    figures   a pattern of names as `comparing.by_name` makes them; ``*`` stands for anything
    better    the direction
    is_exact  the same code gives the same figure: a count, or a quality. Others, CPU time and memory, vary a little
    """

    figures: str
    better: Direction = "lower"
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """
    name         of the module in `benchmarks`
    asks         in one sentence
    cpu_minutes  about, on a core of 2026
    arguments    of the module, beside ``--json``
    file         of figures, without ``.json``, where that is not the name
    keys         fields that tell the rows of a list apart
    compared     the first whose pattern fits a figure counts; what fits none is shown, and never fails
    others       patterns of figures of other systems, which are shown, too
    """

    name: str
    asks: str
    cpu_minutes: float
    needs: Sequence[Need] = ()
    arguments: Sequence[str] = ()
    file: str = ""
    keys: Sequence[str] = ()
    compared: Sequence[Compared] = ()
    others: Sequence[str] = ()

    @property
    def stored(self) -> str:
        return f"{self.file or self.name}.json"

    def missing(self) -> list[Need]:
        return [need for need in self.needs if not need.is_met()]

    def rule_for(self, figure: str) -> Compared | None:
        if any(fnmatchcase(figure, pattern) for pattern in self.others):
            return None
        return next((rule for rule in self.compared if fnmatchcase(figure, rule.figures)), None)
