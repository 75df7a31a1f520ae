"""Where each file of figures comes from: the question, when, of which commit, and on which machine."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.figure_tables import markdown_table
from benchmarks.pages.quality import Tables
from benchmarks.results import Machine, Result
from benchmarks.runner.question import Question


def origins(results: Mapping[str, Result], questions: Mapping[str, Question]) -> Tables:
    """By the stems of files. Machines get letters: most measurements share one."""
    machines: list[Machine] = []
    for result in results.values():
        if result.machine and result.machine not in machines:
            machines.append(result.machine)
    letters = {id(machine): chr(ord("A") + number) for number, machine in enumerate(machines)}
    rows = [
        [
            f"`{questions[stem].name}`",
            f"`{stem}.json`",
            f"{result.when:%Y-%m-%d}" if result.when else "not recorded",
            result.commit or "not recorded",
            next((letters[id(each)] for each in machines if each == result.machine), "not recorded"),
        ]
        for stem, result in results.items()
    ]
    told = [
        [
            letters[id(machine)],
            f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib:g} GiB, Python {machine.python}",
            ", ".join(f"{package} {version}" for package, version in sorted(machine.versions.items())),
        ]
        for machine in machines
    ]
    return {
        "origins": markdown_table(["question", "file", "measured on", "commit", "machine"], rows),
        "machines": markdown_table(["", "machine", "versions"], told),
    }
