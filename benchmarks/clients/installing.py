"""Agents out of npm: in the versions that a lock file pins, or in their newest ones."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from benchmarks.environments import NotInstalledError
from benchmarks.results import ROOT

PINNED = ROOT / "tests" / "clients" / "agents"
_FILES = ("package.json", "package-lock.json")
_DONE = "installed.txt"


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder of npm in which agents are installed, with the Node.js that they need."""

    folder: Path

    @property
    def on_path(self) -> Path:
        return self.folder / "node_modules" / ".bin"

    def version(self, package: str) -> str:
        """Raises NotInstalledError if *package* is not there."""
        described = self.folder / "node_modules" / package / "package.json"
        if not described.exists():
            raise NotInstalledError(f"npm has not installed {package}")
        return str(json.loads(described.read_text(encoding="utf-8"))["version"])


def pinned(place: Path, described: Path = PINNED) -> Programs:
    """Install what the lock file in *described* names into a folder of *place*, if it is not there. The agents: 2 GB.

    npm does not do this by ``npm ci``, which fails where a registry lacks the agents' packages for other platforms.
    Raises NotInstalledError.
    """
    content = "".join((described / name).read_text(encoding="utf-8") for name in _FILES)
    folder = place / f"{described.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _DONE).exists():
            for name in _FILES:
                shutil.copy(described / name, folder)
            _install(folder, "--no-save")
            (folder / _DONE).touch()
    return Programs(folder)


def newest(place: Path, packages: Iterable[str]) -> Programs:
    """Install the newest version of each of *packages* into a folder of *place*. Raises NotInstalledError."""
    folder = place / "agents-newest"
    folder.mkdir(parents=True, exist_ok=True)
    allowed = json.loads((PINNED / _FILES[0]).read_text(encoding="utf-8"))
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        kept = {"private": True, "allowScripts": allowed["allowScripts"]}
        (folder / _FILES[0]).write_text(json.dumps(kept), encoding="utf-8")
        node = f"node@{allowed['dependencies']['node']}"
        wanted = [node, *(f"{package}@latest" for package in packages)]
        _install(folder, "--no-package-lock", *wanted)
    return Programs(folder)


def _install(folder: Path, *arguments: str) -> None:
    """Ask for one package first: where no registry answers, npm would go on trying for minutes, package by package."""
    _npm("view", "node", "version", "--fetch-retries", "1", "--fetch-retry-mintimeout", "1000")
    _npm("install", "--prefix", str(folder), *arguments)


def _npm(*arguments: str) -> None:
    command = ["npm", *arguments, "--no-audit", "--no-fund", "--loglevel", "error"]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise NotInstalledError("there is no npm") from error
    except subprocess.CalledProcessError as error:
        told = (error.stderr or error.stdout).strip().splitlines()
        raise NotInstalledError(told[0].strip() if told else f"npm ended with {error.returncode}") from error
