"""Types what pages of the documentation show. The package is loaded once, and each page has a copy of the process.

Run as a program, it reads a page from each line, ``{"folder": ..., "blocks": [[language, text], ...]}``, and answers
with a line, ``{"printed": [...]}`` or ``{"error": ...}``. A ``command`` is a line of a shell, of which ``toolsearch``
itself runs in the same process. The blocks of ``python`` of a page share their names.
"""

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import toolsearch
import toolsearch.chat
import toolsearch.evaluation
import toolsearch.gateway
import toolsearch.wire
from toolsearch.cli import main
from toolsearch.cli.app import command_line

_PROGRAM = "toolsearch"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # none of a library's threads outlives a fork


class Pages:
    """A process that pages are typed in, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def typed(self, folder: Path, blocks: list[tuple[str, str]]) -> list[str]:
        """What each block prints. A page whose blocks fail fails the test."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), "blocks": blocks}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        printed: list[str] = answer["printed"]
        return printed


@contextmanager
def page_runner(environment: Mapping[str, str]) -> Iterator[Pages]:
    pipe = subprocess.PIPE
    command = [sys.executable, __file__]
    with subprocess.Popen(command, env={**environment, **ONE_THREAD}, stdin=pipe, stdout=pipe, text=True) as process:
        yield Pages(process)


def _serve() -> None:
    for module in (toolsearch, toolsearch.chat, toolsearch.evaluation, toolsearch.gateway, toolsearch.wire):
        for name in module.__all__:
            getattr(module, name)
    command_line()  # loads every command
    toolsearch.default_counter().count("")  # reads its table
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _answer(json.loads(line))
        os.waitpid(child, 0)


def _answer(page: dict[str, Any]) -> None:
    """Ends the process."""
    told = os.dup(1)
    os.dup2(2, 1)  # what a process that a page starts prints is no answer
    try:
        os.chdir(page["folder"])
        answer: dict[str, Any] = {"printed": _type_all(page["blocks"])}
    except BaseException:  # noqa: BLE001  whatever a page may do wrong
        answer = {"error": traceback.format_exc()}
    os.write(told, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _type_all(blocks: list[tuple[str, str]]) -> list[str]:
    scope: dict[str, object] = {"__name__": "__main__"}
    return [_type_command(text) if language == "command" else _run_python(text, scope) for language, text in blocks]


def _type_command(command: str) -> str:
    program, *arguments = shlex.split(command)
    if program == _PROGRAM:
        with _caught() as out:
            code = main(arguments)
        printed = _text_of(out)
    else:
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        code, printed = done.returncode, done.stdout
    assert code == 0, f"{command}\nended with {code} and printed\n{printed}"
    return printed


def _run_python(text: str, scope: dict[str, object]) -> str:
    with _caught() as out:
        exec(compile(text, "a block of Python", "exec"), scope)  # noqa: S102  it is what a reader types
    return _text_of(out)


def _caught() -> contextlib.redirect_stdout[io.TextIOWrapper]:
    """A standard output with all that a real one has."""
    return contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True))


def _text_of(out: io.TextIOWrapper) -> str:
    assert isinstance(out.buffer, io.BytesIO)
    return out.buffer.getvalue().decode("utf-8")


if __name__ == "__main__":
    _serve()
