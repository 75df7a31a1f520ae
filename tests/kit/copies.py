"""Runs scripts of Python in copies of one process, which has loaded what they import: loading takes most of their time.

Run as a program, ``copies.py MODULE...``, it loads these modules. Then it reads a script from each line,
``{"script": ..., "arguments": [...], "folder": ..., "environment": {...}}``, runs it as the main program of a copy of
itself, and answers with a line, ``{"code": ..., "out": ..., "err": ...}``.
"""

import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.kit.commands import Ran

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # none of a library's threads outlives a fork


@dataclass(frozen=True)
class Copies:
    """*process* waits for scripts."""

    process: subprocess.Popen[str]

    def run(
        self, script: Path, *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> Ran:
        """Run *script* to its end, in the folder *cwd*, or in this process's."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {
            "script": str(script),
            "arguments": arguments,
            "folder": str(cwd or Path.cwd()),
            "environment": dict(environment),
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "what the scripts import cannot be loaded"
        return Ran(**json.loads(answer))


@contextmanager
def copies(
    python: Path, *modules: str, options: Sequence[str] = (), environment: Mapping[str, str]
) -> Iterator[Copies]:
    """Start *python* with *options*, and load *modules* there."""
    pipe = subprocess.PIPE
    command = [python, "-P", *options, __file__, *modules]  # what they import is none of the modules beside this one
    with subprocess.Popen(command, env={**environment, **_ONE_THREAD}, stdin=pipe, stdout=pipe, text=True) as process:
        yield Copies(process)


def _serve(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)
    for line in sys.stdin:
        with TemporaryFile() as out, TemporaryFile() as err:
            child = os.fork()
            if not child:
                _run(json.loads(line), out, err)
            _, status = os.waitpid(child, 0)
            ran = {"code": os.waitstatus_to_exitcode(status), "out": _text(out), "err": _text(err)}
            sys.stdout.write(json.dumps(ran) + "\n")
            sys.stdout.flush()


def _run(asked: dict[str, Any], out: IO[bytes], err: IO[bytes]) -> None:
    """Ends the process."""
    code: Any = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = [asked["script"], *asked["arguments"]]
        sys.path.insert(0, str(Path(asked["script"]).parent))
        runpy.run_path(asked["script"], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException:  # noqa: BLE001  whatever a script may do wrong
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


if __name__ == "__main__":
    _serve(sys.argv[1:])
