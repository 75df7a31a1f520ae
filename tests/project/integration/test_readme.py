"""Every block of the README and of docs/*.md runs: it prints what it says it prints, or it is what a file says that is
run elsewhere.

A comment above a block says that it is not run as it stands, but is

    <!-- from FILE -->      an excerpt of an example, which has a test of its own
    <!-- run by .ci/run -->

Each page runs in a process and a folder of its own, with nothing in it but the examples. First its blocks ``console``,
where commands stand after ``$``, above what they print; then its blocks of Python, one after the other, where a block
``text`` after one of them is what it prints. A line ``...`` stands for any lines. Blocks ``json``, ``toml``
and ``sh`` are only read; those of docs/service.md are run by test_service_page.py.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from textwrap import indent

import pytest

from tests.kit.page_runner import Pages, page_runner
from toolsearch.cli.app import command_line

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

_BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_BY_CI = "run by .ci/run"


def _read_shell(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


_READERS = {"json": json.loads, "toml": tomllib.loads, "sh": _read_shell}

# What differs between two runs of the same: times, sizes on disk, how wide a table is, and some tokens of the demo,
# since the interpreter's path is a default of one of its tools.
_VARYING = [
    (re.compile(r"\b\d+\.\d\d s\b"), "T s"),
    (re.compile(r"\b\d+\.\d [kM]B\b"), "S kB"),
    (re.compile(r"\b(\d+),\d{3} tokens"), r"\1k tokens"),
    (re.compile(r"[─ \t]+"), " "),
]
if sys.version_info[:2] != (3, 11):  # by which the README was written; other versions have other functions
    _VARYING.append((re.compile(r"\d[\d,.]*"), "N"))


@dataclass(frozen=True)
class Block:
    """One fenced block; *note* is the comment above it, by which these tests know what to do with it."""

    language: str
    text: str
    note: str


def _blocks(page: Path) -> list[Block]:
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(block["language"], block["text"], block["note"] or "") for block in found]


def _is_run_here(block: Block) -> bool:
    return block.language == "python" and not block.note


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def page(request) -> Path:
    return request.param


@pytest.fixture(scope="module")
def blocks(page) -> list[Block]:
    return _blocks(page)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Iterator[Pages]:
    """Where pages are typed: with the package's commands on the path, and no model hub."""
    commands = tmp_path_factory.mktemp("bin")
    for name, module in (("toolsearch", "-m toolsearch "), ("python", "")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module}"$@"\n', encoding="utf-8")
        command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "COLUMNS": "100",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
        "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state")),  # not what whoever runs the tests has approved
    }
    with page_runner(environment) as runner:
        yield runner


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, page) -> Path:
    """A folder with the examples, as a checkout has them."""
    folder = tmp_path_factory.mktemp(page.stem)
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@dataclass(frozen=True)
class Typed:
    """What a block of Python or a command shows as printed, None where nothing is shown, and what it prints."""

    text: str
    says: str | None
    prints: str


@pytest.fixture(scope="module")
def typed(workspace, pages, blocks) -> list[Typed]:
    """The commands of the page, then its blocks of Python."""
    shown = [("command", command, says) for command, says in _commands(blocks)]
    for block, following in pairwise([*blocks, Block("", "", "")]):
        if _is_run_here(block):
            shown.append(("python", block.text, following.text if following.language == "text" else None))
    printed = pages.typed(workspace, [(kind, text) for kind, text, _ in shown]) if shown else []
    return [Typed(text, says, prints) for (_, text, says), prints in zip(shown, printed, strict=True)]


def _commands(blocks: list[Block]) -> list[tuple[str, str]]:
    """Each command after a ``$``, and what the page says that it prints."""
    parts = [part for block in blocks if block.language == "console" for part in block.text.split("$ ")[1:]]
    return [(command, says) for command, _, says in (part.partition("\n") for part in parts)]


def test_every_block_is_of_a_kind_that_these_tests_know(page, blocks):
    for block in blocks:
        assert block.language in ("console", "python", "text", *_READERS) or block.note == _BY_CI, block
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks)


def test_settings_that_are_shown_can_be_read(blocks):
    for block in blocks:
        _READERS.get(block.language, str)(block.text)


def test_ci_runs_the_commands_of_a_fresh_checkout_word_for_word():
    """But for the folder of the environment that the tests run in."""
    demo, servers, tests = (block.text.strip() for block in _blocks(PAGES[0]) if block.note == _BY_CI)
    create, activate, *steps = tests.split(" && ")
    lines = [line.strip() for line in CI.splitlines()]

    assert f'(cd "$work/copy" && {demo})' in lines
    assert f'(cd "$work/copy" && {servers})' in lines
    assert (create, activate) == ("python3 -m venv .venv", ". .venv/bin/activate")
    suite = 'python .ci/suite.py "$work/whole" "$today" --durations 40'  # which runs it, and failures once more
    run_by = {"python -m pytest": suite}
    assert [step for step in steps if run_by.get(step, step) not in lines] == []


def test_what_is_typed_prints_what_the_page_shows(typed):
    for each in typed:
        if each.says is not None:
            _assert_shows(each.says, each.prints, each.text)


def test_what_is_typed_leaves_only_files_behind_that_git_ignores(workspace, typed):
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()]
    left = {path.name for path in workspace.iterdir()} - {"examples"}

    assert [name for name in sorted(left) if not any(fnmatchcase(name, pattern) for pattern in ignored)] == []


def test_excerpts_are_what_the_examples_say(blocks):
    for block in blocks:
        if block.note.startswith("from "):
            example = (ROOT / block.note.removeprefix("from ")).read_text(encoding="utf-8")
            assert any(indent(block.text, " " * depth) in example for depth in (0, 4, 8)), block


def test_every_command_is_told_of():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = {command.callback.__name__ for command in command_line().registered_commands}

    assert {name for name in commands if f"toolsearch {name}" not in pages} == set()


def test_the_readme_quotes_the_page_of_savings():
    quoted = re.findall(r"\*\*(\d+) tools, ([\d,]+) tokens", PAGES[0].read_text(encoding="utf-8"))
    stored = (ROOT / "benchmarks" / "savings.md").read_text(encoding="utf-8")

    assert [tools for tools, _ in quoted] == ["100", "50", "14"]
    assert [each for each in quoted if "| {} | {} |".format(*each) not in stored] == []


def _assert_shows(says: str, prints: str, what: str) -> None:
    """A line ``...`` of what is said stands for any lines of what is printed; spacing does not count.

    Nor does where a line is wrapped, which differs with how many digits a time has.
    """
    parts = re.split(r"^\.\.\.$", says, flags=re.MULTILINE)
    pattern = "*".join(_literal(_plain(part)) for part in parts)
    assert fnmatchcase(_plain(prints), pattern), f"{what}\nprints\n{prints}"


def _plain(text: str) -> str:
    for varying, constant in _VARYING:
        text = varying.sub(constant, text)
    return " ".join(text.split())


def _literal(text: str) -> str:
    return re.sub(r"[\[*?]", lambda found: f"[{found[0]}]", text)
