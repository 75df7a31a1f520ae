"""What a client is told first, before anything is loaded for it: kept from the last run of the same configuration.

For a first run nothing is kept. Its client is told the names of the servers in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.errors import PinStoreError
from toolsearch.gateway.exposure.own_tools import OwnTools
from toolsearch.storage.pins import APPROVALS_FILE
from toolsearch.storage.private_files import write_private
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS

SECTION = "toolsearch"  # of the configuration: the gateway's settings
BESIDE_TOOLS = (PROMPTS, RESOURCES, TEMPLATES)
_MOST_BYTES = 1_000_000  # of a greeting; a longer one is not kept
_FOLDER = "greetings"  # in the state folder
_CHANGES_THE_LIST = frozenset({"search", "exposure"})  # settings that are not read here


def own_version() -> str:
    try:
        return version("toolsearch")
    except PackageNotFoundError:
        return "0"  # the package is not installed; the protocol requires a version


@dataclass(frozen=True, slots=True)
class Greeting:
    """*instructions* are the gateway's and the servers' that are admitted.

    lists  by the method that asks for it, each list that a client need not wait for. Of tools there is one only if it
           is the gateway's own tools alone, so that it stays as it is
    """

    instructions: str
    lists: Mapping[str, Sequence[JsonObject]]


class GreetingFile:
    """The greeting of the configuration at *config*, which is kept below *state_folder*.

    One that is kept counts as long as the configuration is the same, and people have decided nothing on approvals
    since. Where that cannot be told, it does not count.
    """

    def __init__(self, config: Path, state_folder: Path) -> None:
        self._config = config
        self._state_folder = state_folder
        digest = hashlib.sha256(str(config.absolute()).encode()).hexdigest()[:32]
        self._path = state_folder / _FOLDER / f"{digest}.json"

    def read(self) -> Greeting:
        """The greeting that is kept, or else one that names the servers of the configuration."""
        return self._kept() or _first(self._document())

    def keep(self, greeting: Greeting, approvals: int) -> None:
        """Keep *greeting* for the next start; *approvals* is the version of the decisions that it is based on.

        Raises OSError.
        """
        kept = {
            "key": self._key(),
            "approvals": approvals,
            "instructions": greeting.instructions,
            "lists": greeting.lists,
        }
        content = json.dumps(kept, ensure_ascii=False).encode()
        if len(content) > _MOST_BYTES:
            self._path.unlink(missing_ok=True)
        elif not self._path.is_file() or self._path.read_bytes() != content:
            write_private(self._path, content)

    def _kept(self) -> Greeting | None:
        try:
            kept = as_object(json.loads(self._path.read_bytes())) or {}
            is_current = kept.get("key") == self._key() and kept.get("approvals") == self._approvals()
        except (OSError, ValueError, PinStoreError):
            return None
        instructions, lists = kept.get("instructions"), as_object(kept.get("lists"))
        if not is_current or not isinstance(instructions, str) or lists is None:
            return None
        return Greeting(
            instructions, {method: [*filter(is_object, as_list(each) or [])] for method, each in lists.items()}
        )

    def _approvals(self) -> int:
        path = self._state_folder / APPROVALS_FILE
        if not path.is_file():
            return 0
        from toolsearch.storage.sqlite.pins import SqlitePins

        pins = SqlitePins(path)
        try:
            return pins.version()
        finally:
            pins.close()

    def _key(self) -> str:
        return hashlib.sha256(own_version().encode() + b"\n" + self._config.read_bytes()).hexdigest()

    def _document(self) -> JsonObject:
        try:
            document: Json = json.loads(self._config.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError):
            return {}
        return document if is_object(document) else {}


def _first(document: JsonObject) -> Greeting:
    """The greeting of a first run. Where there are rules it names no server, since rules may hide some.

    What servers offer beside tools is told as soon as it is known: until then, these lists are empty.
    """
    servers = as_object(document.get("mcpServers")) or as_object(document.get("servers")) or {}
    section = as_object(document.get(SECTION, {}))
    names = [name for name, entry in servers.items() if is_object(entry) and entry.get("disabled") is not True]
    own = OwnTools.over(dict.fromkeys(names if section is not None and "rules" not in section else (), ()))
    if not servers or section is None or not _CHANGES_THE_LIST.isdisjoint(section):
        return Greeting(own.instructions, {})
    return Greeting(own.instructions, {TOOLS.method: own.entries, **{each.method: () for each in BESIDE_TOOLS}})
