"""JSON as people write it in files, perhaps with comments: changes one part and leaves the rest as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from toolsearch.documents.json_values import is_object
from toolsearch.errors import SourceError
from toolsearch.tools.json_types import Json, JsonObject

_SKIPPED = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # strings are kept, comments are not
_COMMENT = re.compile(r"(//[^\n]*|/\*.*?\*/)|,", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


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
