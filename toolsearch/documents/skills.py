"""Skills: folders with a ``SKILL.md`` of instructions and further files, by Agent Skills and MCP's extension.

A skill is known by its manifest: every file with its size and digest. A file that is read has to be the one listed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple
from urllib.parse import unquote

from toolsearch.documents.json_values import as_list, as_object, is_object, texts_in
from toolsearch.documents.reading import parse_yaml
from toolsearch.errors import BadArgumentsError, BadToolError, ChangedSkillError, shown_name
from toolsearch.tools.definition import READ_ONLY, Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import ToolOutput, bytes_block, text_block

SKILL_FILE: Final = "SKILL.md"
MOST_FILES: Final = 512  # files and bytes that every host of the extension has to take
MOST_BYTES: Final = 16 * 1024 * 1024
MOST_INSTRUCTIONS: Final = 1024 * 1024  # bytes of a SKILL.md; no model could be sent more
_MOST_FRONTMATTER: Final = 64 * 1024  # characters, of the text and as JSON, with aliases written out
_DEEPEST_FRONTMATTER: Final = 50
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1_024
_LONGEST_PATH: Final = 1_024
_MOST_SEARCHED: Final = 2_000  # characters of a skill's text; with more, no more skills are found beside tools
_MOST_NAMED: Final = 20  # files that an error names
_MOST_LISTED: Final = 100  # files that the answer with a SKILL.md lists
_MOST_CHARACTERS_NAMED: Final = 4_000  # of the names in such a list
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_HIERARCHICAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

SKILL_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "description": f"Path of a file of the skill; {SKILL_FILE} if left out."}
    },
    "additionalProperties": False,
}


class SkillFile(NamedTuple):
    """A file of a skill.

    path    relative to the skill's folder, with ``/``, as a person writes it
    digest  ``sha256:`` and 64 hex digits of the file's bytes
    size    in bytes
    uri     as the server lists it
    """

    path: str
    digest: str
    size: int
    uri: str


@dataclass(frozen=True, slots=True)
class Skill:
    """The manifest of a skill.

    uri    of its SKILL.md; identifies it at its server
    files  by path; SKILL.md is among them. Empty for a dynamic skill, whose files nobody can verify
    """

    uri: str
    frontmatter: JsonObject
    files: Mapping[str, SkillFile] = field(default_factory=dict[str, SkillFile])

    @property
    def name(self) -> str:
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        return str(self.frontmatter["description"])

    @property
    def is_dynamic(self) -> bool:
        return not self.files

    @classmethod
    def from_entry(cls, entry: JsonObject) -> Skill:
        """Read an entry of ``skills/list``. Raises BadToolError, which says what is wrong with it."""
        uri, frontmatter = entry.get("uri"), as_object(entry.get("frontmatter"))
        if not isinstance(uri, str) or not uri.endswith(f"/{SKILL_FILE}") or frontmatter is None:
            raise BadToolError(f"a skill needs the 'uri' of its {SKILL_FILE} and its 'frontmatter'")
        if not _HIERARCHICAL.match(uri):
            raise BadToolError(f"the URI of a skill begins with a scheme and '://', and not as {shown_name(uri)}")
        require_frontmatter(frontmatter)
        root = uri.removesuffix(SKILL_FILE)
        if root.rstrip("/").rpartition("/")[2] != frontmatter["name"]:
            raise BadToolError(
                f"the skill {frontmatter['name']!r} is not in a folder of its name, but at {shown_name(uri)}"
            )
        if entry.get("resources") == "dynamic":
            return cls(uri, frontmatter)
        return cls(uri, frontmatter, _manifest([_listed(each, root) for each in as_list(entry.get("resources")) or ()]))

    @classmethod
    def of_files(cls, uri: str, frontmatter: JsonObject, files: Sequence[SkillFile]) -> Skill:
        """Raises BadToolError if these are not the files of a skill."""
        require_frontmatter(frontmatter)
        return cls(uri, frontmatter, _manifest(files))

    def entry(self) -> dict[str, object]:
        """The skill as ``skills/list`` has it."""
        resources = [{"uri": each.uri, "digest": each.digest, "size": each.size} for each in self.files.values()]
        return {"uri": self.uri, "frontmatter": self.frontmatter, "resources": resources or "dynamic"}

    def file(self, path: str) -> SkillFile:
        """The listed file of that path. Raises BadArgumentsError, written for the model, for any other."""
        if (file := self.files.get(path.removeprefix("./"))) is not None:
            return file
        below = [each for each in self.files if each.startswith(f"{path.removeprefix('./').rstrip('/')}/")]
        there = ", ".join(_first(below or list(self.files), _MOST_NAMED))
        raise BadArgumentsError(f"the skill {self.name!r} has no file {shown_name(path)!r}; it has {there}")

    def require_same(self, file: SkillFile, data: bytes) -> None:
        """Raise ChangedSkillError unless *data* is what the manifest says of *file*."""
        if len(data) != file.size or digest_of(data) != file.digest:
            raise ChangedSkillError(self.name, file.path)
        if file.path == SKILL_FILE:
            self.require_same_frontmatter(data)

    def require_same_frontmatter(self, data: bytes) -> None:
        """Raise ChangedSkillError unless the SKILL.md *data* begins with the frontmatter of the manifest."""
        try:
            frontmatter, _ = split_frontmatter(data.decode())
        except (ValueError, BadToolError):
            raise ChangedSkillError(self.name, SKILL_FILE) from None
        if _as_json(frontmatter) != _as_json(self.frontmatter):
            raise ChangedSkillError(self.name, SKILL_FILE)

    def definition(self, name: str, server: str, instructions: str = "") -> ToolDefinition:
        """The entry of a catalog, under the catalog's *name*. *instructions* are searched, too, as far as they are
        known.
        """
        others = {key: value for key, value in self.frontmatter.items() if key not in ("name", "description")}
        said = "\n".join([*texts_in(others), instructions])
        return ToolDefinition(
            name,
            self.description,
            SKILL_SCHEMA,
            title=self.name,
            annotations={READ_ONLY: True},
            server=server,
            kind="skill",
            text=said[:_MOST_SEARCHED].strip(),
        )


def _as_json(value: JsonObject) -> str:
    return json.dumps(value, sort_keys=True)  # since 1 equals True in Python, and not for a model


def _require_small(frontmatter: JsonObject) -> None:
    """Raise BadToolError if *frontmatter* is too long as JSON or nests too deeply. A value that YAML shares a billion
    times counts each time; the time that this takes is bounded by the same bound.
    """
    left = _MOST_FRONTMATTER
    waiting: list[tuple[Json, int]] = [(frontmatter, 1)]
    while waiting:
        value, depth = waiting.pop()
        children = as_list(value) or as_object(value) or ()
        left -= len(children) * (4 if is_object(value) else 2) if children else len(json.dumps(value))
        if left < 0 or depth > _DEEPEST_FRONTMATTER:
            raise BadToolError(
                "the frontmatter is too long or nested too deeply; "
                f"at most {_MOST_FRONTMATTER:,} characters are allowed"
            )
        waiting += ((child, depth + 1) for child in children)
        waiting += ((child, depth + 1) for child in (as_object(value) or {}).values())


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def split_frontmatter(text: str) -> tuple[JsonObject, str]:
    """The frontmatter of a SKILL.md, and its instructions. Raises BadToolError, which says what is wrong with it."""
    begin, newline, rest = text.removeprefix("\ufeff").replace("\r\n", "\n").partition("\n")
    head, end, body = f"\n{rest}".partition("\n---")
    if begin.rstrip() != "---" or not newline or not end or body.partition("\n")[0].strip():
        raise BadToolError(f"a {SKILL_FILE} begins with '---', its name and description in YAML, and another '---'")
    if len(head) > _MOST_FRONTMATTER:
        raise BadToolError(f"the frontmatter has {len(head):,} characters; at most {_MOST_FRONTMATTER:,} are allowed")
    try:
        frontmatter = as_object(parse_yaml(head))
    except ValueError as error:
        raise BadToolError(f"the frontmatter is no YAML that can be read: {error}") from error
    if frontmatter is None:
        raise BadToolError("the frontmatter is no mapping with a name and a description")
    _require_small(frontmatter)
    return frontmatter, body.partition("\n")[2]


def require_frontmatter(frontmatter: JsonObject) -> None:
    """Raise BadToolError unless the name and the description are as Agent Skills demand."""
    name, description = frontmatter.get("name"), frontmatter.get("description")
    _require_small(frontmatter)
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise BadToolError(
            f"a skill's name has at most {_LONGEST_NAME} characters of a-z 0-9 and single hyphens between; "
            f"{shown_name(str(name))!r} is no such name"
        )
    if not isinstance(description, str) or not description.strip():
        raise BadToolError(f"the skill {name!r} has no description, so no search could find it")
    if len(description) > _LONGEST_DESCRIPTION:
        raise BadToolError(
            f"the description of the skill {name!r} has {len(description):,} characters; "
            f"at most {_LONGEST_DESCRIPTION:,} are allowed"
        )


def _manifest(files: Sequence[SkillFile]) -> Mapping[str, SkillFile]:
    manifest = {each.path: each for each in files}
    if SKILL_FILE not in manifest or len(manifest) != len(files):
        raise BadToolError(f"the files of a skill are listed once each, {SKILL_FILE} among them")
    require_size(len(files), sum(each.size for each in files))
    return manifest


def require_size(files: int, size: int) -> None:
    """Raise BadToolError if a skill of so many *files* with *size* bytes is larger than hosts have to take."""
    if files > MOST_FILES or size > MOST_BYTES:
        raise BadToolError(
            f"the skill has {files:,} files and {size:,} bytes; at most {MOST_FILES} files and {MOST_BYTES:,} bytes "
            "are allowed"
        )


def _listed(value: Json, root: str) -> SkillFile:
    entry = as_object(value) or {}
    uri, digest, size = entry.get("uri"), entry.get("digest"), entry.get("size")
    if not isinstance(uri, str) or not uri.startswith(root) or not is_inside(path := unquote(uri.removeprefix(root))):
        raise BadToolError(f"a file of the skill is not in its folder: {shown_name(str(uri))}")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise BadToolError(f"the file {shown_name(path)} has no digest 'sha256:' and 64 hex digits")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise BadToolError(f"the file {shown_name(path)} has no size in bytes")
    return SkillFile(path, digest, size, uri)


def is_inside(path: str) -> bool:
    """Whether *path* names a file below the folder that it is relative to, in one line of text."""
    steps = path.split("/")
    return not {"", ".", ".."} & set(steps) and "\\" not in path and path.isprintable() and len(path) <= _LONGEST_PATH


def skill_of(entry: Tool) -> Skill | None:
    """The manifest of a skill of a catalog; None for other entries.

    Its callback has it as ``skill``, or the server has listed it. The skill of a stored catalog is read again, which
    may take a while. Raises BadToolError if the server's entry is no skill.
    """
    if not entry.is_skill:
        return None
    own = getattr(entry.callback, "skill", None)
    if isinstance(own, Skill):
        return own
    return Skill.from_entry(entry.origin.raw) if entry.origin else None


def skill_output(skill: Skill, file: SkillFile, data: bytes, *, origin: str) -> ToolOutput:
    """The result of reading *file*: whose it is, for SKILL.md the list of the other files, and its text word for word.

    *data* are the bytes that were read. *origin* says who serves the skill, with the host's own label: ``the MCP server
    acme``. Raises ChangedSkillError unless *data* is what the manifest says.
    """
    skill.require_same(file, data)
    head = f"{file.path} of the skill {skill.name!r} from {origin}; the user did not write it."
    others = [f"{each.path} ({each.size:,} bytes)" for each in skill.files.values() if each.path != SKILL_FILE]
    if file.path == SKILL_FILE and others:
        listed = "\n".join(f"- {each}" for each in _first(others, _MOST_LISTED))
        head = f"{head} Its other files; read them by their paths:\n{listed}"
    return ToolOutput((text_block(head), _block(file, data)))


def _block(file: SkillFile, data: bytes) -> JsonObject:
    try:
        return text_block(data.decode())
    except UnicodeDecodeError:
        return bytes_block(base64.b64encode(data).decode(), file.uri)


def _first(texts: Sequence[str], most: int) -> list[str]:
    """The first *most* of *texts*, fewer if they are long, and the number of all others."""
    lengths = accumulate(len(each) for each in texts[:most])
    shown = sum(length <= _MOST_CHARACTERS_NAMED for length in lengths)
    return [*texts[:shown], *([f"and {len(texts) - shown:,} more"] if len(texts) > shown else [])]
