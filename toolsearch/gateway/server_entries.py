"""Changes the servers in the gateway's file, for commands, the status page and the API of operators.

Everything else in the file stays as it is written. A running gateway changes to what is written there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from toolsearch.documents.editing import edit, text_of
from toolsearch.documents.json_text import JsonText
from toolsearch.errors import BadSettingError, SourceError, shown_name
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import did_you_mean

_SETTINGS: Final = JsonText("toolsearch", "servers")
_ORIGIN: Final = re.compile(r"([^:/?#]*://)?(?:[^/?#]*@)?([^/?#]*)")
Action: TypeAlias = Literal["add", "remove", "pause", "resume"]


class Note(Protocol):
    """Records in the audit what is about to be done. Raises StorageError: it must not be done then."""

    def __call__(self, action: str, subject: str, *, server: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ServerChange:
    """One change. *entry* is that of an added server, as ``mcpServers`` holds it."""

    action: Action
    name: str
    entry: JsonObject | None = None

    @property
    def subject(self) -> str:
        """The server, for the audit; of an added one also the program and the origin of its URL, as they are written.
        The rest of an entry may hold secrets.
        """
        return ": ".join([self.name, *_places(self.entry or {})])

    def record(self, note: Note) -> None:
        """Record the change. Raises as *note*."""
        note(f"{self.action} server", self.subject, server=self.name)

    def make(self, path: Path, environment: Mapping[str, str], note: Note) -> bool:
        """Make the change in the file at *path*, once *note* has recorded it. Return whether it changed anything.

        Raises SourceError for a file that cannot be changed in place, BadSettingError for an unknown server, a name
        that is taken, and an entry that no gateway could use, with the reason that a gateway gives, and as *note*.
        """

        def changed(text: str) -> str:
            after = self._text_after(text, path.parent, environment)
            if after != text:
                self.record(note)
            return after

        return edit(path, changed)

    def _text_after(self, text: str, folder: Path, environment: Mapping[str, str]) -> str:
        match self.action:
            case "add":
                return _with_server(text, self.name, self.entry or {}, folder, environment)
            case "remove":
                return _without_server(text, self.name)
            case "pause" | "resume":
                return _with_disabled(text, self.name, is_disabled=self.action == "pause")


def servers_in(path: Path) -> dict[str, bool]:
    """The names of the servers in the file at *path*, in its order, and whether each is paused. Raises SourceError."""
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path.name} cannot be read: {error}") from error
    return {name: _is_disabled(entry) for name, entry in _section(text).servers(text).items()}


def _places(entry: JsonObject) -> Iterator[str]:
    if isinstance(command := entry.get("command"), str):
        yield shown_name(command)
    for url in (entry.get("url"), entry.get("httpUrl")):
        if isinstance(url, str) and (found := _ORIGIN.match(url)):
            yield shown_name("".join(found.groups("")))


def _section(text: str) -> JsonText:
    """The section that holds the servers. A file of VS Code may be served, too."""
    document = JsonText().document(text)
    return JsonText(_section_name(document))


def _section_name(document: JsonObject) -> str:
    return "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"


def _is_disabled(entry: JsonObject) -> bool:
    return entry.get("disabled") is True


def _known(text: str, name: str) -> JsonObject:
    """The entry of *name* in *text*. Raises BadSettingError if there is none."""
    servers = _section(text).servers(text)
    if name not in servers:
        raise BadSettingError(f"there is no server {name!r}{did_you_mean(name, servers)}")
    return servers[name]


def _with_server(text: str, name: str, entry: JsonObject, folder: Path, environment: Mapping[str, str]) -> str:
    section = _section(text)
    if name in section.servers(text):
        raise BadSettingError(f"there is a server {name!r} already; remove it first, or choose another name")
    after = section.changed(text, remove=(), add={name: entry})
    for refusal in read_gateway_config(section.document(after), environment, folder=folder).refused:
        if refusal.name == name:
            raise BadSettingError(f"the server {name!r} could not be used: {refusal.reason}")
    return after


def _without_server(text: str, name: str) -> str:
    _known(text, name)
    after = _section(text).changed(text, remove=[name], add={})
    return _SETTINGS.changed(after, remove=[name], add={}) if name in _SETTINGS.servers(after) else after


def _with_disabled(text: str, name: str, *, is_disabled: bool) -> str:
    if _is_disabled(_known(text, name)) is is_disabled:
        return text
    section = _section_name(JsonText().document(text))
    return JsonText(section, name, "disabled").with_value(text, is_disabled)
