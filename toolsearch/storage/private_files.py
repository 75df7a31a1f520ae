"""Writes files that only their owner may read, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Put *content* at *path*, mode 0600, in a folder made with 0700. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")  # 0600 from the start
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_private(path: Path) -> None:
    """Make sure that there is a file at *path* which only its owner can read, empty if it is new. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.chmod(0o600)
