"""Skills as clients of MCP's extension are shown them, and their files by URI.

Equal URIs of two servers are two files, so clients are given URIs that hold the label of the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.access.reach import Reach
from toolsearch.calling.pipeline import CallOutcome
from toolsearch.catalog.catalog import Catalog
from toolsearch.documents.skills import SKILL_FILE, Skill, SkillFile, skill_of
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.proxy.addresses import Address, wrap_as_path
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.results import binary_data, block_text, text_block
from toolsearch.wire.mcp.lists import DIRECTORY, MARKDOWN, mime_type
from toolsearch.wire.mcp.requests import ERROR_CODE, META, meta_of


class FoundFile(NamedTuple):
    """A file of the skill that is the *entry* of a catalog."""

    entry: Tool
    skill: Skill
    file: SkillFile


_Files = Mapping[str, list[FoundFile]]  # URI -> the skills that list it, the innermost first
_NO_FILES: Final[_Files] = {}


@dataclass(slots=True)
class SkillFiles:
    """Follows the catalog. Safe to share between threads, since two threads at most read the same manifests twice."""

    catalog: Catalog
    _read: tuple[Mapping[str, Tool] | None, _Files] = field(default=(None, _NO_FILES), init=False)

    def skills(self, reach: Reach) -> Iterator[FoundFile]:
        """The SKILL.md of each skill in *reach*, by name."""
        found = (found for files in self._files().values() for found in files if found.file.path == SKILL_FILE)
        yield from sorted((each for each in found if _is_in(reach, each)), key=lambda each: each.entry.name)

    def find(self, reach: Reach, server: str, uri: str) -> FoundFile | None:
        """The file *uri* of *server*, as a part of the innermost skill in *reach* that lists it."""
        return next((each for each in self._listing(reach, uri) if each.entry.definition.server == server), None)

    def servers(self, reach: Reach, uri: str) -> set[str]:
        """The servers with a skill in *reach* that lists the file *uri*."""
        return {each.entry.definition.server for each in self._listing(reach, uri)}

    def _listing(self, reach: Reach, uri: str) -> Iterator[FoundFile]:
        return (each for each in self._files().get(uri, ()) if _is_in(reach, each))

    def directory(self, reach: Reach, uri: str) -> list[dict[str, Any]]:
        """The files and folders directly in *uri*, a folder of a skill in *reach*, by name; empty for any other URI."""
        children: dict[str, dict[str, Any]] = {}
        for found in self.skills(reach):
            for file in found.skill.files.values():
                whole = _wrapped(found, file.uri)
                name, slash, _ = whole.removeprefix(f"{uri}/").partition("/")
                if whole.startswith(f"{uri}/"):
                    kind = mime_type(DIRECTORY) if slash else _mime_type(name)
                    children.setdefault(name, {"uri": f"{uri}/{name}", "name": unquote(name), **kind})
        return [children[name] for name in sorted(children)]

    def _files(self) -> _Files:
        contents, files = self._read
        if contents is not self.catalog.contents:
            contents = self.catalog.contents
            files = _files_of(contents)
            self._read = contents, files
        return files


def _is_in(reach: Reach, found: FoundFile) -> bool:
    return reach.allows(found.entry.definition, found.entry.original)


def _files_of(contents: Mapping[str, Tool]) -> _Files:
    files: dict[str, list[FoundFile]] = {}
    for entry in contents.values():
        if (skill := _skill_of(entry)) is not None:
            for file in skill.files.values():
                files.setdefault(file.uri, []).append(FoundFile(entry, skill, file))
    for found in files.values():
        found.sort(key=lambda each: (-len(each.skill.uri), each.entry.name))
    return files


def _skill_of(entry: Tool) -> Skill | None:
    try:
        return skill_of(entry)
    except ToolSearchError:
        return None  # of a catalog that has just lost it, or a stored one whose source gives no such skill any more


def skill_entry(found: FoundFile) -> dict[str, Any]:
    skill, origin = found.skill, found.entry.origin
    files = [
        {"uri": _wrapped(found, each.uri), "digest": each.digest, "size": each.size} for each in skill.files.values()
    ]
    raw: JsonObject = origin.raw if origin is not None else {}
    return {**raw, "uri": _wrapped(found, skill.uri), "frontmatter": skill.frontmatter, "resources": files}


def _wrapped(found: FoundFile, uri: str) -> str:
    return wrap_as_path(Address(found.entry.definition.server, uri))


def file_contents(uri: str, found: FoundFile, outcome: CallOutcome) -> dict[str, Any]:
    """The result of ``resources/read`` for a file of a skill, out of the *outcome* of reading it. Raises MCPError if it
    was not read.
    """
    result = outcome.result
    block = result.content[-1] if result.content else text_block("Nothing was read")
    text, data = block_text(block), binary_data(block)
    if result.is_error or (text is None and data is None):
        raise MCPError(INVALID_PARAMS, text or "Nothing was read", {ERROR_CODE: result.error_code, "uri": uri})
    content = {"blob": data} if text is None else {"text": text}
    return {"contents": [{"uri": uri, **_mime_type(found.file.path), **content}], **_meta_of(outcome)}


def _meta_of(outcome: CallOutcome) -> dict[str, Any]:
    meta = meta_of(outcome.raw or {})
    return {META: meta} if meta else {}


def _mime_type(name: str) -> dict[str, str]:
    return mime_type(MARKDOWN) if name.endswith(".md") else {}
