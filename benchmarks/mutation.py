"""Do the tests notice when the security-relevant modules are changed? A mutation run by mutmut, in a scratch copy.

    pip install -e '.[dev,mutation]'
    python -m benchmarks.mutation --sample 300

mutmut notes which tests run which function, changes one place of a function at a time, and runs the tests that run it
until one fails, each with a time limit. What no test notices is printed with its place. Texts of errors are left alone.
The sample is drawn with a fixed seed; ``--sample 0`` takes every mutant.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures

ROOT = Path(__file__).parents[1]
MODULES = (  # reach, what is ranked within it, budget, validation, hooks and limits, trust
    "toolsearch/access/reach.py",
    "toolsearch/access/reach.py",
    "toolsearch/discovery/view.py",
    "toolsearch/discovery/pass_through.py",
    "toolsearch/discovery/exposure.py",
    "toolsearch/discovery/discovered_tools.py",
    "toolsearch/calling/validation.py",
    "toolsearch/calling/schema_validator.py",
    "toolsearch/calling/pipeline.py",
    "toolsearch/calling/pipeline.py",
    "toolsearch/calling/pipeline.py",
    "toolsearch/calling/limits.py",
    "toolsearch/gateway/trust/*.py",
    "toolsearch/scanning/*.py",
    "indexes/toolsearch_indexes/queries.py",
    "indexes/toolsearch_indexes/ranking.py",
)
TESTS = (
    "tests/test_engine.py",
    "tests/access/test_reach.py",
    *(f"tests/calling/test_{name}.py" for name in ("hooks", "limits", "manager", "validation")),
    *(f"tests/discovery/test_{name}.py" for name in ("discovered", "exposure", "exposure_policy", "search_tool")),
    *(f"tests/gateway/test_{name}.py" for name in ("scan", "trust", "trust_damage")),
    *(f"tests/indexes/{name}.py" for name in ("properties/test_index", "test_index", "test_ranking")),
    *(f"tests/sessions/test_{name}.py" for name in ("eviction", "order", "session", "session_calls", "session_reach")),
)
# mutmut knows the layouts "package" and "src/package". It forks from a process that has run no test yet, since what is
# kept for the life of a process, such as a compiled schema, would hide that the code behind it has changed.
_SETTINGS = """
[tool.mutmut]
source_paths = ["toolsearch", "src"]
only_mutate = {modules}
also_copy = ["examples", "tests", "benchmarks", ".ci", "README.md", "CHANGELOG.md", "LICENSE", "constraints.txt"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
process_isolation = "forkserver"
do_not_mutate_patterns = ['^\\s*raise ', '^\\s*r?f?"[^"]* [^"]*",?\\)?$', '^\\s*logger\\.']
"""
_CAUGHT = ("killed", "timeout", "caught by type check", "segfault")


@dataclass(frozen=True)
class Mutant:
    """One change; *name* is module, function and number, as mutmut writes them."""

    name: str
    status: str

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]


def copy_checkout(to: Path) -> None:
    """Copy what Git knows, as it is in the working tree, and say in the copy what is to be mutated."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout  # noqa: S607
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / "indexes").rename(to / "src")
    modules = [module.replace("indexes/", "src/") for module in MODULES]
    project = (to / "pyproject.toml").read_text(encoding="utf-8").replace('"indexes"', '"src"')
    settings = _SETTINGS.format(modules=json.dumps(modules), tests=json.dumps([*TESTS]))
    (to / "pyproject.toml").write_text(project + settings, encoding="utf-8")


def mutmut(*arguments: str, folder: Path, check: bool = True) -> str:
    environment = os.environ | {"PYTHONPATH": "", "COLUMNS": "200"}
    command = [str(Path(sys.executable).parent / "mutmut"), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    if check and done.returncode:
        sys.exit(re.sub(r"[^\n]*\r", "", done.stdout)[-8_000:] + done.stderr[-2_000:])
    return done.stdout


def mutants(folder: Path) -> list[Mutant]:
    lines = mutmut("results", "--all", "true", folder=folder).splitlines()
    named = (line.strip().rpartition(": ") for line in lines if "__mutmut_" in line)
    return sorted((Mutant(name, status) for name, _, status in named), key=lambda mutant: mutant.name)


def run(folder: Path, *, sample: int, seed: int, children: int) -> list[Mutant]:
    """Return the mutants that were tried."""
    mutmut("run", "--max-children", str(children), "toolsearch.access.reach.*__mutmut_1", folder=folder)
    names = [mutant.name for mutant in mutants(folder)]
    chosen = random.Random(seed).sample(names, min(sample, len(names))) if sample else names
    print(f"{len(names):,} mutants, {len(chosen):,} of them tried", flush=True)
    mutmut("run", "--max-children", str(children), *chosen, folder=folder)
    return [mutant for mutant in mutants(folder) if mutant.name in set(chosen)]


def place_of(diff: str, name: str) -> str:
    """File and line of a change, out of its diff, whose lines are counted from the function's first."""
    path = re.search(r"^--- (\S+)", diff, re.MULTILINE)
    hunk = re.search(r"^@@ -(\d+)[^\n]*\n(.*)", diff, re.MULTILINE | re.DOTALL)
    if not path or not hunk:
        return name
    file = path[1].replace("src/", "indexes/", 1)
    before = next(number for number, line in enumerate(hunk[2].splitlines()) if line.startswith("-"))
    function = re.split(r"ǁ|x_", name.rpartition(".")[2].partition("__mutmut_")[0])[-1]
    tree = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    starts = [
        node.lineno
        for node in tree
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    return f"{file}:{(starts[0] if starts else 1) + int(hunk[1]) - 1 + before}"


def report(tried: Sequence[Mutant], folder: Path) -> None:
    """Print the survivors, and the score of each module."""
    for mutant in tried:
        if mutant.status not in _CAUGHT:
            diff = mutmut("show", mutant.name, folder=folder)
            changed = [line for line in diff.splitlines() if re.match(r"[+-](?![+-])", line)]
            print(f"\n{place_of(diff, mutant.name)}  {mutant.status}", *changed, sep="\n")
    rows = [
        (name, f"{each['noticed']:,}", f"{each['of']:,}", f"{each['noticed'] / each['of']:.1%}")
        for name, each in scores(tried).items()
    ]
    print_table(("module", "noticed", "of", "share"), rows)


def scores(tried: Sequence[Mutant]) -> dict[str, dict[str, int]]:
    """How many of the mutants of each module were noticed, and of all."""
    total = Counter(mutant.module for mutant in tried)
    caught = Counter(mutant.module for mutant in tried if mutant.status in _CAUGHT)
    by_module = {name: {"noticed": caught[name], "of": total[name]} for name in sorted(total)}
    return {**by_module, "all": {"noticed": caught.total(), "of": total.total()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="mutants to try, drawn at random; 0: all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="mutants tried at a time")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_checkout(folder)
        tried = run(folder, sample=options.sample, seed=options.seed, children=options.children)
        report(tried, folder)
    if options.json:
        write_figures(options.json, "mutation", scores(tried), seed=options.seed)


if __name__ == "__main__":
    main()
