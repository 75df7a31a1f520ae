"""Packages of npm and PyPI, each in a folder of its own, so that no two have to agree on a version of a third."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from benchmarks.environments import Environment, NotInstalledError, python_in
from benchmarks.results import ROOT
from benchmarks.wild.lists import Package, WildDocument, WildServer

PLACE: Final = ROOT / "benchmarks" / ".cache" / "wild"
_DONE: Final = "installed.txt"
_ENTRY_POINTS: Final = (
    "import sys, importlib.metadata as m;"
    "print(*(e.name for e in m.distribution(sys.argv[1]).entry_points if e.group == 'console_scripts'), sep='\\n')"
)


def command_of(server: WildServer, place: Path) -> list[str]:
    """Install *server* in *place*, if it is not there, and return what starts it. Raises NotInstalledError."""
    folder = _folder(server, place)
    if server.registry == "npm":
        return ["node", str(_script(_npm(server, folder), server))]
    python = python_in(folder, _environment(server))
    return [str(python.parent / _program(_scripts(python, server.package), server))]


def path_of(document: WildDocument, place: Path) -> Path:
    """Install what *document* is in, if it is not there, and return its path. Raises NotInstalledError."""
    folder = _folder(document, place)
    if document.registry == "npm":
        found = _npm(document, folder) / document.file
    else:
        python = python_in(folder, _environment(document))
        found = next(iter(python.parents[1].glob(f"lib/*/site-packages/{document.file}")), folder / document.file)
    if not found.exists():
        raise NotInstalledError(f"{document.package} {document.version} has no {document.file}")
    return found


def _folder(package: Package, place: Path) -> Path:
    return place / f"{package.registry}-{package.package.replace('/', '-').lstrip('@')}-{package.version}"


def _environment(package: Package) -> Environment:
    return Environment((f"{package.package}=={package.version}",))


def _npm(package: Package, folder: Path) -> Path:
    """The folder of the package itself. No script of any package runs: most of these would fetch a browser."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _DONE).exists():
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            _run("npm", "install", "--prefix", str(folder), *options, f"{package.package}@{package.version}")
            (folder / _DONE).touch()
    return folder / "node_modules" / package.package


def _script(folder: Path, server: WildServer) -> Path:
    described: dict[str, Any] = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    programs: str | dict[str, str] = described.get("bin") or described.get("main") or "index.js"
    if isinstance(programs, str):
        return folder / programs
    return folder / programs[_program(list(programs), server)]


def _scripts(python: Path, package: str) -> list[str]:
    return _run(str(python), "-c", _ENTRY_POINTS, package).split()


def _program(programs: list[str], server: WildServer) -> str:
    if server.program in programs:
        return server.program
    if server.program or not programs:
        raise NotInstalledError(f"{server.package} {server.version} has no program {server.program!r}")
    return next((name for name in programs if "mcp" in name), programs[0])


def _run(*command: str) -> str:
    if shutil.which(command[0]) is None:
        raise NotInstalledError(f"there is no {command[0]}")
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode:
        told = (ended.stderr or ended.stdout).strip().splitlines()
        raise NotInstalledError(told[0].strip() if told else f"{command[0]} ended with {ended.returncode}")
    return ended.stdout
