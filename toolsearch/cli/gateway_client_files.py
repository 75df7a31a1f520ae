"""Changes the servers in clients' files and nothing else: order, comments and line ends stay.

Each change is shown. It is made for the whole file or not at all, after a copy of the file.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from toolsearch.cli.output import line, print_diff, stderr
from toolsearch.documents.editing import claimed, put, text_of
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json, JsonObject

_TOML_HEADER = re.compile(r"^[ \t]*\[.+\][ \t]*(?:#.*)?$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ConfigText(Protocol):
    """A file of one format. Raises SourceError if a text cannot be read, or cannot be changed without a loss."""

    def servers(self, text: str) -> dict[str, JsonObject]:
        """The servers by name, as they are written; ``{}`` if the text has no section for them."""
        ...

    def changed(
        self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject], written: Mapping[str, str] = {}
    ) -> str:
        """The text without the servers *remove*, and with *add* after those that stay.

        *written* maps names of *add* to texts from which they are copied as written, with their comments.
        """
        ...


class TomlText:
    """Codex's TOML. Comments on lines of their own stay. Other comments are removed with the line that they
    belong to.
    """

    def __init__(self, section: str) -> None:
        self._section = section

    def servers(self, text: str) -> dict[str, JsonObject]:
        section = self._document(text).get(self._section, {})
        return {name: entry for name, entry in section.items() if is_object(entry)}

    def changed(
        self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject], written: Mapping[str, str] = {}
    ) -> str:
        lines = "\r\n" if "\r\n" in text else "\n"
        kept = self._parted(text, remove)[0].rstrip()
        added = "".join(self._written_server(name, entry, written.get(name, "")) for name, entry in add.items())
        made = kept + lines + added.replace("\n", lines) if kept else added.lstrip().replace("\n", lines)
        section = {name: entry for name, entry in self.servers(text).items() if name not in remove} | dict(add)
        if self._document(made) != {**self._document(text), self._section: section}:
            raise SourceError(f"{self._section!r} cannot be changed in place; change it by hand")
        return made

    def _written_server(self, name: str, entry: JsonObject, text: str) -> str:
        """The tables of *entry* as written in *text*, or newly written if *text* does not have them."""
        own = self._parted(text, [name])[1].replace("\r\n", "\n").strip()
        try:
            if own and self.servers(own) == {name: entry}:
                return f"\n{own}\n"
        except SourceError:  # a line of a text value looks like a comment
            pass
        return "".join(_toml_tables([self._section, name], entry))

    def _parted(self, text: str, names: Collection[str]) -> tuple[str, str]:
        """*text* without the tables of the servers *names*, and these tables. Comment lines of the tables stay in
        *text*.
        """
        kept: list[str] = []
        removed: list[str] = []
        is_removed = False
        for row in text.splitlines(keepends=True):
            if _TOML_HEADER.match(row.rstrip("\r\n")):
                is_removed = self._server_of(row) in names
            is_comment = row.lstrip().startswith("#")
            if is_comment or not is_removed:
                kept.append(row)
            else:
                removed.append(row)
                if not row.strip() and kept and kept[-1].strip():
                    kept.append(row)  # paragraphs of comments stay separate
        return "".join(kept), "".join(removed)

    def _server_of(self, header: str) -> str | None:
        try:
            section: Json = tomllib.loads(header).get(self._section)
        except tomllib.TOMLDecodeError:
            return None
        return next(iter(section), None) if is_object(section) else None

    def _document(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SourceError(f"it is malformed: {error}") from error


def _toml_tables(path: Sequence[str], entry: JsonObject) -> Iterator[str]:
    """A table, and one for each object in it."""
    values = {key: value for key, value in entry.items() if not is_object(value)}
    if values or not entry:
        yield f"\n[{'.'.join(map(_toml_key, path))}]\n"
    for key, value in values.items():
        yield f"{_toml_key(key)} = {_toml_value(value)}\n"
    for key, value in entry.items():
        if is_object(value):
            yield from _toml_tables([*path, key], value)


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _toml_value(value: Json) -> str:
    if is_object(value):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml_value(inner)}" for key, inner in value.items()) + " }"
    if is_list(value):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # JSON and TOML write strings, numbers and booleans alike


ShowsText: TypeAlias = Callable[[str], JsonObject]  # shows people a file's text without secrets


class FileChanges:
    """Files with their new texts, by the first change. A file may hold servers at several places."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self._places: dict[Path, dict[str, ShowsText]] = {}

    def __bool__(self) -> bool:
        return bool(self._texts)

    def text_of(self, path: Path) -> str:
        """The text of *path* after the changes so far."""
        return self._texts[path] if path in self._texts else text_of(path)

    def put(self, path: Path, text: str, place: str, view: ShowsText) -> None:
        """Let *path* become *text*. *view* shows the difference, and *place* names the owner of the file."""
        self._texts[path] = text
        self._places.setdefault(path, {})[place] = view

    def extend(self, others: FileChanges) -> None:
        self._texts |= others._texts
        self._places |= others._places

    def apply(self, *, write: bool) -> None:
        """Show the changes, and make them if *write*."""
        for path, text in self._texts.items():
            for place, view in self._places[path].items():
                _show(path, place, text, view)
            if write:
                backup = _replace(path, text)
                stderr().print(line(f"wrote {path}" + (f", the old one is {backup.name}" if backup else "")))
        if not write:
            stderr().print("Nothing is changed yet. Add --write to make the change.")


def backups(path: Path) -> list[tuple[int, Path]]:
    """The copies beside *path*, the oldest first."""
    name = re.compile(re.escape(path.name) + r"\.backup-([0-9]+)")
    return sorted((int(found[1]), each) for each in path.parent.iterdir() if (found := name.fullmatch(each.name)))


def _show(path: Path, place: str, after: str, view: ShowsText) -> None:
    old, new = (json.dumps(view(text), indent=2).splitlines() for text in (text_of(path), after))
    print_diff(difflib.unified_diff(old, new, str(path), f"{path} ({place})", lineterm=""))


def _replace(path: Path, text: str) -> Path | None:
    """Write *text* to *path* with the same mode. Return the copy of the old file."""
    with claimed(path) as (target, fresh):
        backup = _backup(target)
        put(target, fresh, text)
        return backup


def _backup(path: Path) -> Path | None:
    if not path.exists():
        return None
    number = 1 + max((each_number for each_number, _ in backups(path)), default=0)
    backup = path.with_name(f"{path.name}.backup-{number}")
    shutil.copy2(path, backup)
    return backup
