"""The gateway's own file, as `import` changes it: servers, their time-outs, and the tools that nobody may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from toolsearch.cli.gateway_adoption import Adoption, redacted
from toolsearch.cli.gateway_config_text import JsonText
from toolsearch.cli.gateway_file_changes import FileChanges, text_of
from toolsearch.documents.json_values import as_list, is_object
from toolsearch.tools.json_types import Json, JsonObject

_SERVERS = JsonText("mcpServers")
_SETTINGS = JsonText("toolsearch", "servers")
_DENY = ("toolsearch", "rules", "deny")


class OwnFile:
    """The file at *path*, which need not exist, and what it takes over. *servers* are those that it has by now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = text_of(path)
        self.servers: Mapping[str, JsonObject] = _SERVERS.servers(self._text)
        self._settings: dict[str, JsonObject] = {}
        self._denied: list[str] = []

    def take(self, adoption: Adoption) -> None:
        """Take what moves. Of two clients that say something of one server, the first counts."""
        self.servers = {**self.servers, **adoption.moved}
        for name, said in adoption.settings.items():
            self._settings[name] = {**said, **self._settings.get(name, {})}
        self._denied += adoption.denied

    def put_into(self, changes: FileChanges) -> None:
        text = _with_settings(self._text, self._settings)
        text = _with_denied(text, self._denied)
        before = _SERVERS.servers(text)
        if before != self.servers:
            text = _SERVERS.changed(text, remove=before, add=self.servers)
        if text != self._text:
            changes.put(self.path, text, "the gateway", _shown)


def _with_settings(text: str, settings: Mapping[str, JsonObject]) -> str:
    """*text* with *settings* by server. What it says already stays."""
    before = _SETTINGS.servers(text)
    after = {**before, **{name: {**said, **before.get(name, {})} for name, said in settings.items()}}
    return text if after == before else _SETTINGS.with_value(text, after)


def _with_denied(text: str, rules: Collection[str]) -> str:
    before = as_list(_value_at(text, _DENY)) or []
    new = [rule for rule in dict.fromkeys(rules) if rule not in before]
    return JsonText(*_DENY).with_value(text, [*before, *new]) if new else text


def _shown(text: str) -> JsonObject:
    """What an import may change in *text*."""
    settings = {"servers": _SETTINGS.servers(text), "rules": {"deny": _value_at(text, _DENY)}}
    return {"mcpServers": redacted(_SERVERS.servers(text)), "toolsearch": settings}


def _value_at(text: str, path: Collection[str]) -> Json:
    value: Json = JsonText().document(text)
    for key in path:
        value = value.get(key) if is_object(value) else None
    return value
