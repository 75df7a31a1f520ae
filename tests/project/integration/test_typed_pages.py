"""Every block of Python of README.md and docs/*.md, and every example, passes both type checkers in strict mode.

They are checked as a user has them: in a folder of their own, against the installed package and the real SDKs. The
blocks of a page are one file, since they run as one, with each line where the page has it; an excerpt of an example is
checked in the example.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^(?P<note><!-- from [^\n]+ -->\n)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

MISTAKES = """\
from openai import OpenAI

from toolsearch import Catalog, Ranking, Session, ToolSearch


def ask(client: OpenAI, session: Session) -> str | None:
    reply = client.chat.completions.create(messages=[], **session.request("openai", model="m"))
    session.request("open-ai")  # line 8
    client.chat.completions.create(messages=[], **session.request("openai"))  # line 9: without a model
    return reply.choices[0].message.txt  # line 10


class Index:
    rankings: tuple[str, ...] = ("keyword",)


ranking: Ranking = "auto"  # line 17
ToolSearch(Catalog(), index=Index())  # line 18
"""
FOUND = {("mistakes.py", line) for line in (8, 9, 10, 17, 18)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, folder)
    for page in PAGES:
        (folder / f"page_{page.stem.replace('-', '_')}.py").write_text(_code(page), encoding="utf-8")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    return folder


def _code(page: Path) -> str:
    """The blocks of *page*, and an empty line for each line between them."""
    text = page.read_text(encoding="utf-8")
    code, end = "", 0
    for block in _BLOCK.finditer(text):
        start = block.start("code")
        code += "\n" * text.count("\n", end, start)
        end = start if block["note"] else block.end("code")
        code += text[start:end]
    return code


def test_the_blocks_of_a_page_keep_their_lines() -> None:
    page = ROOT / "docs" / "loop.md"
    lines, code = page.read_text(encoding="utf-8").splitlines(), _code(page).splitlines()
    kept = [number for number, line in enumerate(code) if line]

    assert all(code[number] == lines[number] for number in kept)
    assert '    session = engine.session("user-42")' in code
    assert not any("AsyncOpenAI" in line for line in code), "an excerpt"


def test_mypy_finds_nothing_but_the_mistakes_that_it_has_to_find(folder: Path) -> None:
    kept = ROOT / ".mypy_cache"  # which `mypy` in the checkout fills with the same SDKs
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", f"--cache-dir={kept}"]
    said = _said(folder, [sys.executable, "-m", "mypy", *options, "."])
    errors = re.findall(r"^([^:\n]+):(\d+): error: .+", said, re.MULTILINE)

    assert {(file, int(line)) for file, line in errors} == FOUND, said


def test_pyright_finds_nothing_but_the_mistakes_that_it_has_to_find(folder: Path) -> None:
    settings = {"typeCheckingMode": "strict", "pythonVersion": f"{sys.version_info[0]}.{sys.version_info[1]}"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    said = json.loads(_said(folder, command))["generalDiagnostics"]
    errors = [(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"]) for each in said]

    assert {(file, line) for file, line, _ in errors} == FOUND, errors


def _said(folder: Path, command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr  # 0 would be no mistake found, and others its own failures
    return done.stdout
