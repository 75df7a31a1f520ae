"""Files that only their owner may read, written whole or not at all; among them the last listings of MCP servers."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Protocol

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import JsonObject

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


def write_new(path: Path, content: bytes) -> None:
    """As `write_private`, but raises FileExistsError if there is a file already; then that is left as it is."""
    _make_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.link(name, path)  # whole, and never over another file
    finally:
        Path(name).unlink(missing_ok=True)


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


class ListingPersistence(Protocol):
    """Keeps one document for each server, by a name that is safe for a file. It is only a cache.

    Each method may block, and raise StorageError, OSError or ValueError.
    """

    def load(self, name: str) -> JsonObject | None: ...

    def save(self, name: str, document: JsonObject) -> None: ...


class ListingFiles:
    """A `ListingPersistence` of one file for each server in *folder*, which only their owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str) -> JsonObject | None:
        try:
            kept = json.loads(self._path(name).read_bytes())
        except FileNotFoundError:
            return None
        if not is_object(kept):
            raise ValueError("it is no JSON object")
        return kept

    def save(self, name: str, document: JsonObject) -> None:
        write_private(self._path(name), json.dumps(document, separators=(",", ":")).encode())

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
