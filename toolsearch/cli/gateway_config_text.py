"""Changes the servers in a client's file and nothing else in it: not its order, its comments or its line ends."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json, JsonObject

_SKIPPED = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # strings are kept, comments are not
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_TOML_HEADER = re.compile(r"^[ \t]*\[.+\][ \t]*(?:#.*)?$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ConfigText(Protocol):
    """A file of one format. Raises SourceError for a text that cannot be read, or not changed without a loss."""

    def servers(self, text: str) -> dict[str, JsonObject]:
        """The servers by name, as they are written; ``{}`` where the text has no section for them."""
        ...

    def changed(self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject]) -> str:
        """The text without the servers *remove*, and with *add* after those that stay."""
        ...


class JsonText:
    """JSON, with comments and trailing commas if need be; those between the servers are lost with them.

    *section* are the keys that lead to the servers, from the outermost object on.
    """

    def __init__(self, *section: str) -> None:
        self._section = section
        self._shown = ".".join(section)

    def servers(self, text: str) -> dict[str, JsonObject]:
        section: Json = self.document(text)
        for key in self._section:
            section = section.get(key, {}) if is_object(section) else None
        if not is_object(section):
            raise SourceError(f"{self._shown!r} must map names to servers")
        return {name: entry for name, entry in section.items() if is_object(entry)}

    def changed(self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject]) -> str:
        kept = {name: entry for name, entry in self.servers(text).items() if name not in remove}
        return self.with_value(text, {**kept, **add})

    def with_value(self, text: str, value: Json) -> str:
        """The text with *value* as the section."""
        made = self._spliced(text, value)
        if self.document(made) != _replaced(self.document(text), self._section, value):
            raise SourceError(f"{self._shown!r} cannot be changed in place; change it by hand")
        return made

    def document(self, text: str) -> JsonObject:
        """The whole of *text*."""
        try:
            document: Json = json.loads(_plain_json(text)) if text.strip() else {}
        except (ValueError, RecursionError) as error:
            raise SourceError(f"it is malformed: {error}") from error
        if not is_object(document):
            raise SourceError("it must be an object")
        return document

    def _spliced(self, text: str, value: Json) -> str:
        """*text* with the section replaced, or put first into the innermost object of its path that is there."""
        if "{" not in _plain_json(text):
            text += "{}\n"
        spans = [_value_span(text, self._section[:depth]) for depth in range(len(self._section) + 1)]
        depth, (start, end) = next((depth, span) for depth, span in reversed([*enumerate(spans)]) if span)
        lines = "\r\n" if "\r\n" in text else "\n"
        if depth == len(self._section):
            return text[:start] + _written(value, depth).replace("\n", lines) + text[end:]
        key, *inner = self._section[depth:]
        for name in reversed(inner):
            value = {name: value}
        is_empty = not _plain_json(text)[start:end].strip("{} \t\r\n")
        member = f'\n{"  " * depth}  "{key}": {_written(value, depth + 1)}' + (f"\n{'  ' * depth}" if is_empty else ",")
        return text[: start + 1] + member.replace("\n", lines) + text[start + 1 :]


def _written(value: Json, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _replaced(document: JsonObject, path: Sequence[str], value: Json) -> JsonObject:
    """*document* with *value* at *path*."""
    key, *rest = path
    inner = document.get(key)
    return {**document, key: _replaced(inner if is_object(inner) else {}, rest, value) if rest else value}


def _plain_json(text: str) -> str:
    """*text* with comments and trailing commas replaced by blanks, so that positions stay the same."""
    without = _SKIPPED.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return _TRAILING_COMMA.sub(lambda found: found[1] or " ", without)


def _value_span(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """The start and the end of the value at *path*, whose first key is in the outermost object of *text*."""
    plain = _plain_json(text)
    start, end = plain.find("{"), plain.rfind("}") + 1
    for key in path:
        span = _member_span(plain, start, key) if plain[start : start + 1] == "{" else None
        if span is None:
            return None
        start, end = span
    return start, end


def _member_span(plain: str, opening: int, key: str) -> tuple[int, int] | None:
    """The start and the end of the value of *key* in the object that begins at *opening*."""
    decoder = json.JSONDecoder()
    place = opening + 1
    while (place := _after_space(plain, place)) < len(plain) and plain[place] == '"':
        name, place = decoder.raw_decode(plain, place)
        start = _after_space(plain, _after_space(plain, place) + 1)
        _, end = decoder.raw_decode(plain, start)
        if name == key:
            return start, end
        place = _after_space(plain, end) + 1
    return None


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


class TomlText:
    """Codex's TOML. Comments inside a table go with it; those before and after it stay."""

    def __init__(self, section: str) -> None:
        self._section = section

    def servers(self, text: str) -> dict[str, JsonObject]:
        section = self._document(text).get(self._section, {})
        return {name: entry for name, entry in section.items() if is_object(entry)}

    def changed(self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject]) -> str:
        lines = "\r\n" if "\r\n" in text else "\n"
        kept = self._without(text, remove).rstrip()
        added = "".join(each for name, entry in add.items() for each in _toml_tables([self._section, name], entry))
        made = kept + lines + added.replace("\n", lines) if kept else added.lstrip().replace("\n", lines)
        section = {name: entry for name, entry in self.servers(text).items() if name not in remove} | dict(add)
        if self._document(made) != {**self._document(text), self._section: section}:
            raise SourceError(f"{self._section!r} cannot be changed in place; change it by hand")
        return made

    def _without(self, text: str, names: Collection[str]) -> str:
        kept: list[str] = []
        removed: list[str] = []  # the lines of the server that is being left out
        leaving: str | None = None
        for line in text.splitlines(keepends=True):
            if _TOML_HEADER.match(line.rstrip("\r\n")) and (server := self._server_of(line)) != leaving:
                kept += _comments_after(removed)
                removed = []
                leaving = server if server in names else None
            (kept if leaving is None else removed).append(line)
        return "".join([*kept, *_comments_after(removed)])

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


def _comments_after(table: Sequence[str]) -> list[str]:
    """The comments at the end of a table that belong to what follows: those after a blank line, or all if none is."""
    end = len(table)
    while end and table[end - 1].lstrip()[:1] in {"", "#"}:
        end -= 1
    rest = [line.strip() for line in table[end:]]
    first = rest.index("") if "" in rest else 0
    return [*table[end + first :]] if any(rest[first:]) else []


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
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are written alike in both
