"""Questions one after the other, each in a process of its own, so that none is measured in what another one left."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import ROOT, read_result
from benchmarks.runner.question import Question

Start = Callable[[Sequence[str]], int]  # a command to its exit code


@dataclass(frozen=True, slots=True)
class Outcome:
    """*problem* is empty if the question was answered."""

    question: str
    cpu_minutes: float = 0.0
    problem: str = ""


def run_all(
    questions: Iterable[Question], out: Path | None, *, more: Sequence[str] = (), start: Start | None = None
) -> Iterator[Outcome]:
    """Ask each, and go on with the next one if it fails.

    out    the folder for their results; without it they print their tables only
    more   arguments for each
    start  runs a command
    """
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    for question in questions:
        if missing := question.missing():
            told = "; ".join(f"{need.what}: {need.remedy}" for need in missing)
            yield Outcome(question.name, problem=f"cannot be run here, {told}")
        else:
            yield _run(question, out, more, start or _start)


def _run(question: Question, out: Path | None, more: Sequence[str], start: Start) -> Outcome:
    file = out / question.stored if out else None
    before = _written_ns(file)
    command = [sys.executable, "-m", f"benchmarks.{question.name}", *question.arguments, *more]
    started = _cpu_of_children_s()
    code = start([*command, "--json", str(file.absolute())] if file else command)
    cpu_minutes = (_cpu_of_children_s() - started) / 60
    problem = f"ended with exit code {code}" if code else ""
    if not problem and file:
        problem = _unwritten(file, before)
    return Outcome(question.name, cpu_minutes, problem)


def _unwritten(file: Path, before_ns: int | None) -> str:
    if _written_ns(file) == before_ns:
        return f"did not write {file}"
    try:
        read_result(file)
    except ValueError as error:
        return f"wrote what is no result into {file}: {error}"
    return ""


def _written_ns(file: Path | None) -> int | None:
    return file.stat().st_mtime_ns if file and file.exists() else None


def _start(command: Sequence[str]) -> int:
    """One thread, so that CPU time is of the work, and not of threads that wait for each other by spinning."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
