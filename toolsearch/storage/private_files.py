"""Writes files that only their owner may read, whole or not at all.

The owner's alone they are by their mode. Windows has no such modes: there a file is as private as its folder, and the
folders of a user are private.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from pathlib import Path

logger = logging.getLogger(__name__)

_has_warned = threading.Event()  # once is enough


def has_modes() -> bool:
    """Whether the mode of a file says here who may read it."""
    return sys.platform != "win32"


def write_private(path: Path, content: bytes) -> None:
    """Put *content* at *path*, mode 0600, in a folder made with 0700. Raises OSError."""
    _make_folder(path.parent)
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
    _make_folder(path.parent)
    path.touch(mode=0o600)
    path.chmod(0o600)


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not has_modes() and not _has_warned.is_set() and not folder.resolve().is_relative_to(Path.home()):
        _has_warned.set()
        logger.warning(
            "the mode of a file protects nothing on Windows: keep secrets and approvals below your own user folder, or "
            "see to it that nobody else may read %s",
            folder,
        )
