"""What MCP servers listed last, so that their tools can be found before they are started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from toolsearch.documents.json_values import is_object
from toolsearch.storage.private_files import write_private
from toolsearch.tools.json_types import JsonObject


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
