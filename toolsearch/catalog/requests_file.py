"""Files of requests that a model or a person wrote: JSON lines, one tool per line, to read, edit, commit and share.

The requests of an index come first from these files, then from the packs of the package.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from toolsearch.catalog.request_packs import (
    MAX_CHARACTERS,
    MAX_REQUESTS,
    NO_REQUESTS,
    PackedTool,
    RequestOptions,
    RequestPacks,
    RequestSource,
    cleaned_requests,
    definition_hash,
    shipped_requests,
    sketch_of,
)
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.scanning.rules import findings_in
from toolsearch.scanning.texts import Finding, Text
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import own_name

_MAX_BYTES = 64_000_000
_MAX_SHOWN = 60  # characters of a bad value in a message
_MARGIN: Final = 3.0  # log odds; requests tell somebody what to do and are never shown to a model
_REQUIRED: Final = ("server", "name", "definition", "words", "requests")
_KNOWN: Final = (*_REQUIRED, "model")
_HASH = re.compile(r"[0-9a-f]{16}")
_WORDS = re.compile(r"(?:[0-9a-f]{4}(?: [0-9a-f]{4}){0,15})?")


def packed_tool(definition: ToolDefinition, requests: Iterable[str], *, model: str = "") -> PackedTool:
    """Return the entry that binds *requests* to *definition*."""
    name = own_name(definition)
    written = definition_hash(name, definition.description)
    words = sketch_of(definition.description)
    return PackedTool(definition.server, name, written, words, tuple(requests), model)


def read_requests(path: Path) -> tuple[PackedTool, ...]:
    """Return the entries of the file, in its order. Raises SourceError."""
    return _parsed(_bytes_of(path), str(path))


def write_requests(path: Path, tools: Iterable[PackedTool]) -> None:
    """Write *tools* as the whole file, by server and name, in one step: a reader sees the old file or the new one.

    Raises OSError.
    """
    ordered = sorted(tools, key=lambda tool: (tool.server, tool.name))
    whole = path.resolve()
    beside = whole.with_name(f".{whole.name}.new")
    beside.write_text(
        "".join(f"{_line_of(tool)}\n" for tool in ordered), encoding="utf-8", errors="replace", newline="\n"
    )
    beside.replace(whole)


def packs_in(path: Path) -> RequestSource:
    """Return the requests of the file, which is read completely now. Raises SourceError."""
    content = _bytes_of(path)
    tools = _parsed(content, str(path))
    # An index that is opened again looks for the file there, so the place is in the version.
    place = str(path.resolve())
    version = f"{hashlib.sha256(content).hexdigest()[:16]} {place}"
    return RequestPacks(lambda: tools, version=version, options=RequestOptions(files=(place,)))


def suspicion(request: str) -> Finding | None:
    """The first finding of the gateway's scan in a text that a model wrote."""
    return next(findings_in([Text("requests", request)], margin=_MARGIN), None)


def bad_requests(message: str) -> SourceError:
    """The error for a file of requests that cannot be used."""
    return SourceError(message, case=SourceError.BAD_REQUESTS)


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise bad_requests(f"{path} has more than {_MAX_BYTES:,} bytes: that is no file of requests")
        return path.read_bytes()
    except OSError as error:
        raise bad_requests(f"the requests in {path} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=4)  # a service opens a hundred catalogs with one file
def _parsed(content: bytes, name: str) -> tuple[PackedTool, ...]:
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise bad_requests(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from error
    read: dict[tuple[str, str], tuple[int, PackedTool]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            tool = _tool_in(line, f"{name}, line {number}")
            before, _ = read.setdefault((tool.server, tool.name), (number, tool))
            if before != number:
                raise bad_requests(f"{name}, line {number}: {tool.name!r} is in line {before}, too; keep one")
    texts = [
        Text(f"{name}, line {line}: request {number}", request)
        for line, tool in read.values()
        for number, request in enumerate(tool.requests, 1)
    ]
    for found in findings_in(texts, margin=_MARGIN):
        raise bad_requests(f"{found.place} {_told(found)}")
    return tuple(tool for _, tool in read.values())


def _tool_in(line: str, place: str) -> PackedTool:
    try:
        given: Json = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise bad_requests(f"{place} is not JSON: {reason}") from None
    if not is_object(given):
        raise bad_requests(f"{place} is JSON, but not an object")
    fault = _fault_of(given)
    if fault:
        raise bad_requests(f"{place}: {fault}")
    values: Mapping[str, Any] = given
    return PackedTool(
        values["server"],
        values["name"],
        values["definition"],
        frozenset(values["words"].split()),
        cleaned_requests(values["requests"]),
        values.get("model", ""),
    )


def _fault_of(given: JsonObject) -> str:
    """The fault of a line, or ""."""
    missing = [key for key in _REQUIRED if key not in given]
    unknown = [key for key in given if key not in _KNOWN]
    if missing or unknown:
        named = f"it has no {missing[0]!r}" if missing else f"{_shown(unknown[0])} is no field"
        return f"{named}; the fields are {', '.join(_KNOWN)}"
    texts = [key for key in _KNOWN if key != "requests" and not isinstance(given.get(key, ""), str)]
    if texts:
        return f"{texts[0]!r} must be a text, not {_shown(given[texts[0]])}"
    if not given["name"]:
        return "the tool has no name"
    if not _HASH.fullmatch(given["definition"]) or not _WORDS.fullmatch(given["words"]):
        return "'definition' or 'words' is damaged; remove the line, and 'toolsearch enrich' writes it again"
    return _fault_of_requests(given["requests"])


def _fault_of_requests(given: Json) -> str:
    if not is_list(given) or not all(isinstance(each, str) for each in given):
        return "'requests' must be a list of texts"
    if len(given) > MAX_REQUESTS:
        return f"it has {len(given)} requests; a tool has at most {MAX_REQUESTS}"
    for number, text in enumerate(given, 1):
        fault = _fault_of_form(text)
        if fault:
            return f"request {number} {fault}"
    return ""


def fault_of_request(text: str) -> str:
    """The reason why *text* cannot be a request, or ""."""
    found = None if (fault := _fault_of_form(text)) else suspicion(text)
    return _told(found) if found else fault


def _fault_of_form(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        return f"has {len(text):,} characters; at most {MAX_CHARACTERS} are allowed"
    if not text.isprintable() or not text.strip():
        return f"is no printable line: {_shown(text)}"
    return ""


def _told(found: Finding) -> str:
    return f"reads like an instruction to a model ({found.rule}): {found.evidence!r}"


def _line_of(tool: PackedTool) -> str:
    line: dict[str, Any] = {
        "server": tool.server,
        "name": tool.name,
        "definition": tool.definition,
        "words": " ".join(sorted(tool.words)),
        "requests": list(tool.requests),
    }
    return json.dumps(line | ({"model": tool.model} if tool.model else {}), ensure_ascii=False)


def _shown(value: Json) -> str:
    return ascii(value)[:_MAX_SHOWN]


class RequestChain:
    """The requests of each of *sources* for a tool, in order."""

    def __init__(self, sources: Sequence[RequestSource]) -> None:
        self._sources = sources
        self.id = " ".join(source.id for source in sources)
        self.options = RequestOptions(
            any(source.options.shipped for source in sources),
            tuple(path for source in sources for path in source.options.files),
        )

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        return tuple(request for source in self._sources for request in source.requests_for(definition))


def request_source(*, shipped: bool, files: Iterable[str | Path] = ()) -> RequestSource:
    """Return the requests of *files*, followed by those of the package if *shipped* is set.

    Raises SourceError if a file cannot be read as a whole, and BadSettingError if *files* is not a list of paths.
    """
    sources = [packs_in(path) for path in file_list(files)]
    sources += [shipped_requests()] if shipped else []
    if len(sources) == 1:
        return sources[0]
    return RequestChain(sources) if sources else NO_REQUESTS


def file_list(files: Iterable[str | Path]) -> tuple[Path, ...]:
    """Raises BadSettingError for anything but a list of paths: a single text would become one path per letter."""
    given = cast("object", files)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise BadSettingError(f"requests_files must be a list of paths, not {ascii(files)[:80]}; write [path]")
    paths = tuple(cast("Iterable[object]", given))
    for path in paths:
        if not isinstance(path, str | Path) or not str(path).strip():
            raise BadSettingError(f"requests_files must hold paths, but {ascii(path)[:80]} is no path")
    return tuple(Path(cast("str | Path", path)) for path in paths)
