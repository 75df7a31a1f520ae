"""Python in a process of its own, which imports what this one does: the one way in which tests start programs."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """This process's variables and *more*, and the folders that it imports from."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder)} | more


def run_python(*arguments: str, cwd: Path | None = None, **more: str) -> Ran:
    """Run Python to its end, which is to be a success, with *more* in its environment."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def start_python(*arguments: str, cwd: Path | None = None, **more: str) -> subprocess.Popen[str]:
    """Start Python with pipes to and from it, and *more* in its environment."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=cwd, env=environment(**more), text=True, stdin=pipe, stdout=pipe, stderr=pipe
    )


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
