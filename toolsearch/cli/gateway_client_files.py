"""Changes the servers in clients' files and nothing else: order, comments and line ends stay.

Each change is shown. It is made for the whole file or not at all, after a copy of the file.
"""

from __future__ import annotations

import codecs
import difflib
import json
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from toolsearch.cli.output import line, print_diff, stderr
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json, JsonObject

_SKIPPED = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # strings are kept, comments are not
_COMMENT = re.compile(r"(//[^\n]*|/\*.*?\*/)|,", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_TOML_HEADER = re.compile(r"^[ \t]*\[.+\][ \t]*(?:#.*)?$")
_WAIT_S, _MOST_WAITS = 0.05, 100  # for another command that is changing the same file
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


class JsonText:
    """JSON, perhaps with comments and trailing commas. Comments inside a server are removed with it; those between
    stay.

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

    def changed(
        self, text: str, *, remove: Collection[str], add: Mapping[str, JsonObject], written: Mapping[str, str] = {}
    ) -> str:
        value = {name: entry for name, entry in self.servers(text).items() if name not in remove} | dict(add)
        span = _value_span(text, self._section)
        if span is None:
            return self.with_value(text, value)
        texts = {name: self._written_server(name, entry, written.get(name, "")) for name, entry in add.items()}
        lines = "\r\n" if "\r\n" in text else "\n"
        made = _with_members(text, span, remove, texts, "  " * (len(self._section) + 1), lines)
        is_right = self._reads_as(made, _replaced(self.document(text), self._section, value))
        return made if is_right else self.with_value(text, value)

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

    def _reads_as(self, text: str, document: JsonObject) -> bool:
        try:
            return self.document(text) == document
        except SourceError:
            return False

    def _written_server(self, name: str, entry: JsonObject, text: str) -> str:
        """*entry* as written in *text*, or newly written if *text* does not have it."""
        span = _value_span(text, [*self._section, name])
        if span is not None and self.servers(text).get(name) == entry:
            return text[slice(*span)]
        return _written(entry, len(self._section) + 1)

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
        if not is_empty and isinstance(value, bool) and "\n" not in text[start:end]:
            return f'{text[: start + 1]}"{key}": {json.dumps(value)}, {text[start + 1 :]}'
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
    return next(((each.value, each.end) for each in _members(plain, opening) if each.name == key), None)


class _Member(NamedTuple):
    """A member of an object: the places of its key and its value, and the end of the value."""

    name: str
    start: int
    value: int
    end: int


def _members(plain: str, opening: int) -> Iterator[_Member]:
    """The members of the object that begins at *opening*."""
    decoder = json.JSONDecoder()
    place = opening + 1
    while (start := _after_space(plain, place)) < len(plain) and plain[start] == '"':
        name, place = decoder.raw_decode(plain, start)
        value = _after_space(plain, _after_space(plain, place) + 1)
        _, end = decoder.raw_decode(plain, value)
        yield _Member(name, start, value, end)
        place = _after_space(plain, end) + 1


def _with_members(
    text: str, span: tuple[int, int], remove: Collection[str], add: Mapping[str, str], indent: str, lines: str
) -> str:
    """*text* with other members in its object at *span*. Comments between members stay. *add* are JSON texts."""
    plain = _plain_json(text)
    kept: list[str] = []
    between: list[str] = []  # the text before each kept member, and the text at the end
    gap, place = "", span[0] + 1
    for each in _members(plain, span[0]):
        gap += _without_commas(text[place : each.start])
        place = each.end
        if each.name in remove or each.name in add:
            gap = gap if gap.strip() else ""
        else:
            between.append(gap)
            kept.append(text[each.start : each.end])
            gap = ""
    end = gap + _without_commas(text[place : span[1] - 1])
    for name, value in add.items():
        between.append((end.rstrip() if end.strip() else "") + lines + indent)
        kept.append(f"{json.dumps(name, ensure_ascii=False)}: " + value.replace("\r\n", "\n").replace("\n", lines))
        end = ""
    if add:
        end = lines + indent[2:]
    members = "".join(
        f"{before}{member}{',' if number < len(kept) else ''}"
        for number, (before, member) in enumerate(zip(between, kept, strict=True), start=1)
    )
    return f"{text[: span[0] + 1]}{members}{end}{text[span[1] - 1 :]}"


def _without_commas(gap: str) -> str:
    """The text between two members, with its comments and without the comma."""
    return _COMMENT.sub(lambda found: found[1] or "", gap)


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


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
            stderr().print("Nothing is changed yet: --write does it.")


def text_of(path: Path) -> str:
    """The text of the file, with its own line ends; "" if there is none."""
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def backups(path: Path) -> list[tuple[int, Path]]:
    """The copies beside *path*, the oldest first."""
    name = re.compile(re.escape(path.name) + r"\.backup-([0-9]+)")
    return sorted((int(found[1]), each) for each in path.parent.iterdir() if (found := name.fullmatch(each.name)))


def _show(path: Path, place: str, after: str, view: ShowsText) -> None:
    old, new = (json.dumps(view(text), indent=2).splitlines() for text in (text_of(path), after))
    print_diff(difflib.unified_diff(old, new, str(path), f"{path} ({place})", lineterm=""))


def _replace(path: Path, text: str) -> Path | None:
    """Write *text* to *path* with the same mode. Return the copy of the old file."""
    with _claimed(path) as (target, fresh):
        backup = _backup(target)
        _put(target, fresh, text)
        return backup


def edit(path: Path, change: Callable[[str], str]) -> bool:
    """Let *change* make the text of *path* another one. Return whether it is.

    Commands change a file one after the other. Raises SourceError if it cannot be changed, or if a program that knows
    nothing of this has changed it meanwhile.
    """
    with _claimed(path) as (target, fresh):
        try:
            before = text_of(target)
            after = change(before)
        except (SourceError, UnicodeDecodeError) as error:
            raise SourceError(f"{path} is left as it is: {error}") from error
        if after == before:
            fresh.unlink()
            return False
        if text_of(target) != before:
            raise SourceError(f"{path} is left as it is: another program has just changed it; try again")
        _put(target, fresh, after)
        return True


@contextmanager
def _claimed(path: Path) -> Generator[tuple[Path, Path]]:
    """The file at *path*, and an empty file beside it that only one command can have. The block moves or deletes it.

    Raises SourceError if another command has it for more than a few seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link stays, and the file that it points to is replaced
    fresh = target.with_name(f".{target.name}.new")
    patience = iter(range(_MOST_WAITS))
    while True:
        try:
            fresh.touch(mode=0o600, exist_ok=False)  # an entry may hold a secret
            break
        except FileExistsError:
            if next(patience, None) is None:
                reason = f"another command is changing it; if none is, delete {fresh}"
                raise SourceError(f"{path} is left as it is: {reason}") from None
            time.sleep(_WAIT_S)
    try:
        yield target, fresh
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _put(target: Path, fresh: Path, text: str) -> None:
    """Let *target* be *text*, which is written to *fresh* first, with the mark and the mode of the old file."""
    mark = codecs.BOM_UTF8 if target.exists() and target.read_bytes().startswith(codecs.BOM_UTF8) else b""
    fresh.write_bytes(mark + text.encode())
    if target.exists():
        shutil.copymode(target, fresh)
    fresh.replace(target)


def _backup(path: Path) -> Path | None:
    if not path.exists():
        return None
    number = 1 + max((each_number for each_number, _ in backups(path)), default=0)
    backup = path.with_name(f"{path.name}.backup-{number}")
    shutil.copy2(path, backup)
    return backup
