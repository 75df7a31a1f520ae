"""Virtual environments beside the one at hand, so that what is installed there need not agree with it on a version."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock


class NotInstalledError(Exception):
    """An environment could not be made; the message is the installer's last line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """*python* is a version, or the path of an interpreter."""

    requires: tuple[str, ...]
    python: str = "3.11"


def python_in(place: Path, environment: Environment) -> Path:
    """The interpreter of *environment* in the folder *place*, which is made if it is not there or has other versions.

    Several processes may ask at the same time: one makes it, and the others wait. Raises NotInstalledError.
    """
    python, made = place / "bin" / "python", place / "requires.txt"
    wanted = "\n".join((environment.python, *environment.requires))
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f"{place.name}.lock")):
        if not made.exists() or made.read_text(encoding="utf-8") != wanted:
            _make(place, environment)
            made.write_text(wanted, encoding="utf-8")
    return python


def _make(place: Path, environment: Environment) -> None:
    """By uv where there is one: it takes seconds where pip takes minutes. Pip may know of indexes that uv does not."""
    python = str(place / "bin" / "python")
    basis = environment.python if Path(environment.python).is_absolute() else f"python{environment.python}"
    by_pip = (
        (basis, "-m", "venv", "--clear", str(place)),
        (python, "-m", "pip", "install", "--quiet", *environment.requires),
    )
    if uv := shutil.which("uv"):
        by_uv = (
            (uv, "venv", "--quiet", "--clear", "--python", environment.python, str(place)),
            (uv, "pip", "install", "--quiet", "--python", python, *environment.requires),
        )
        try:
            return _run(by_uv)
        except NotInstalledError:
            pass
    return _run(by_pip)


def _run(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise NotInstalledError(f"there is no {command[0]}") from error
        if ended.returncode:
            told = (ended.stderr or ended.stdout).strip().splitlines()
            raise NotInstalledError(told[-1].strip() if told else f"{command[0]} ended with {ended.returncode}")
