"""The entries of a server that are judged, and the verdicts: whether each may be shown and, if not, why not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol, Self
from urllib.parse import unquote

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.errors import BadToolError
from toolsearch.scanning.texts import Finding
from toolsearch.tools.definition import Refusal, Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import SEPARATOR, namespaced
from toolsearch.upstreams.config import McpServer
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, ListOf, without_modification


class Kind(Enum):
    TOOL = "tool"
    SKILL = "skill"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "resource template"
    INSTRUCTIONS = "instructions"  # the server's text about itself; each server has at most one


_LISTS: Mapping[Kind, ListOf] = {
    Kind.SKILL: SKILLS,
    Kind.PROMPT: PROMPTS,
    Kind.RESOURCE: RESOURCES,
    Kind.TEMPLATE: TEMPLATES,
}


def list_of(kind: Kind) -> ListOf:
    """The list that entries of *kind*, other than instructions, stand in."""
    return TOOLS if kind is Kind.TOOL else _LISTS[kind]


FOUND: Final = frozenset({Kind.TOOL, Kind.SKILL})  # kinds whose names texts may imitate, because searches find them


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as its server sent it.

    name         for people
    remote_name  the server's own name for it: a name, or the URI of a skill, resource or template; empty for
                 instructions
    """

    server: str
    kind: Kind
    remote_name: str
    name: str
    raw: JsonObject

    def pin(self) -> str:
        """SHA-256 (hex) over the server's name, the entry, and, except for tools, its kind.

        The size and the date of a resource are left out because they change with its contents. The files of a skill
        count with their digests, in any order.
        """
        if self.kind is Kind.TOOL:
            return pin_of([self.server, self.raw])
        steady = without_modification(self.raw) if self.kind is Kind.RESOURCE else self.by_file(self.raw)
        return pin_of([self.server, self.kind.value, steady])

    def by_file(self, raw: JsonObject) -> JsonObject:
        """*raw*, a version of this entry, with the files of a skill by URI in place of their list."""
        if self.kind is not Kind.SKILL:
            return raw
        return {**raw, _FILES: {str(each.get("uri")): each for each in _files(raw)}}

    @property
    def own_name(self) -> str:
        """The name that its author gave it, without the folders of a skill."""
        return _folder(self.remote_name).rpartition("/")[2] if self.kind is Kind.SKILL else self.remote_name

    @property
    def texts(self) -> JsonObject:
        """The entry without what is no text: of the files of a skill, only the URIs are left, as they are listed and as
        models are shown them.
        """
        if self.kind is not Kind.SKILL:
            return self.raw
        uris = (str(each.get("uri")) for each in _files(self.raw))
        return {**self.raw, _FILES: [list(dict.fromkeys((uri, unquote(uri)))) for uri in uris]}


_FILES: Final = "resources"  # field of a skill's entry


def _files(skill: JsonObject) -> list[JsonObject]:
    return [as_object(each) or {} for each in as_list(skill.get(_FILES)) or ()]


def _folder(uri: str) -> str:
    return uri.removesuffix(f"/{SKILL_FILE}")


def shown_name(server: str, kind: Kind, remote_name: str) -> str:
    """The name for people, who may also enter it: ``git__log``, ``git__file:///README``, ``git__skill://review`` for a
    skill, by its folder, or the server's own name.
    """
    if kind in (Kind.TOOL, Kind.PROMPT):
        return namespaced(server, remote_name)
    remote_name = _folder(remote_name) if kind is Kind.SKILL else remote_name
    return f"{server}{SEPARATOR}{remote_name}" if remote_name else server


def pin_of(document: Any) -> str:
    """SHA-256 (hex) of *document*; key order and white space do not count."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tool_entry(tool: Tool) -> Entry:
    """The entry of a tool or of a skill, prompt or resource, as its server lists it, whatever people call it.

    Raises BadToolError if no server has listed it.
    """
    if tool.origin is None:
        raise BadToolError(f"{tool.name} cannot be approved, because no server lists it")
    if (kind := kind_of(tool)) is not Kind.TOOL:
        return content_entry(tool.origin.server, kind, tool.origin.raw)
    return Entry(tool.origin.server, Kind.TOOL, tool.origin.remote_name, tool.listed_name, tool.origin.raw)


def kind_of(tool: Tool) -> Kind:
    is_template = tool.origin is not None and TEMPLATES.name_of(tool.origin.raw) == tool.origin.remote_name
    return Kind.TEMPLATE if is_template and tool.definition.kind == "resource" else Kind(tool.definition.kind)


def own_entry(tool: Tool) -> Entry:
    """The entry of a tool of no server, whose name servers might imitate. No server has sent it, so *raw* is empty."""
    return Entry(tool.definition.server or "this catalog", Kind.TOOL, tool.definition.local_name, tool.name, {})


def content_entry(server: str, kind: Kind, raw: JsonObject) -> Entry:
    """The entry of a skill, a prompt, a resource, a template or instructions."""
    remote_name = (_LISTS[kind].name_of(raw) or "") if kind in _LISTS else ""
    return Entry(server, kind, remote_name, shown_name(server, kind, remote_name), raw)


class ReviewReason(Enum):
    """Why an entry needs review."""

    NEW = "new"  # never seen before, and the settings require a review
    CHANGED = "changed"  # differs from the approved version
    SUSPICIOUS = "suspicious"  # the scan found something
    WITHDRAWN = "withdrawn"  # a person took the approval back
    REFUSED = "refused"  # a person refused this definition
    UNREADABLE = "approvals cannot be read"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry that somebody should look at, and why.

    A held entry can be neither searched, suggested, counted, called nor read, and clients learn nothing of it. *pin*
    identifies the definition that was looked at: an approval names it, so that any other definition is held again.
    """

    entry: Entry = field(repr=False, compare=False)  # the pin stands for it
    pin: str
    why: ReviewReason
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()  # places that differ from the approved version, for people
    refused_by: str = ""

    @classmethod
    def of(
        cls,
        entry: Entry,
        why: ReviewReason,
        *,
        findings: Sequence[Finding] = (),
        changes: tuple[str, ...] = (),
        refused_by: str = "",
    ) -> Self:
        return cls(entry, entry.pin(), why, tuple(findings), changes, refused_by)

    @property
    def server(self) -> str:
        return self.entry.server

    @property
    def kind(self) -> Kind:
        return self.entry.kind

    @property
    def name(self) -> str:
        return self.entry.name

    def written(self) -> JsonObject:
        """The item as the status page, commands and the service show it. *name* is the server's own name for it."""
        return {
            "label": self.label,
            "server": self.server,
            "kind": self.kind.value,
            "name": self.entry.remote_name,
            "pin": self.pin,
            "why": self.why.value,
            "refused_by": self.refused_by,
            "findings": [{"rule": each.rule, "place": each.place, "evidence": each.evidence} for each in self.findings],
            "changes": [*self.changes],
        }

    @property
    def is_only_new(self) -> bool:
        """Whether the only reason to hold it is that nobody has looked at it yet."""
        return self.why is ReviewReason.NEW and not self.findings

    @property
    def label(self) -> str:
        """The name that people are shown: the name alone for a tool, with the kind in front for other entries."""
        return self.name if self.kind is Kind.TOOL else f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """*admitted* keeps the given order. *held* awaits approval. *warnings* are about entries that were admitted
    nevertheless.
    """

    admitted: tuple[Entry, ...]
    held: tuple[ReviewItem, ...] = ()
    warnings: tuple[ReviewItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdmitted:
    """The entries of one server's listing that did not simply become tools.

    held       awaits approval
    refused    cannot be used as tools
    ruled_out  denied by a rule that holds for everybody
    warnings   about tools that are admitted nevertheless
    """

    held: tuple[ReviewItem, ...] = ()
    refused: tuple[Refusal, ...] = ()
    ruled_out: tuple[str, ...] = ()
    warnings: tuple[ReviewItem, ...] = ()


class ToolGate(Protocol):
    """Judges listings. Deterministic and offline: the same tools, pins and settings give the same verdict."""

    def version(self) -> int:
        """A number that changes when judging again may give another verdict: after an approval or a withdrawal, or when
        the approvals cannot be read any more.
        """
        ...

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:
        """Judge everything that *server* lists now. *others* are the tools and skills of other servers, whose names
        it may imitate.
        """
        ...

    def know(self, server: McpServer) -> None:
        """Judge the listings of *server* from now on. Approvals of another server with its name do not count."""
        ...

    def close(self) -> None:
        """Close the storage of approvals."""
        ...


class OpenGate:
    """Admits everything: the trust settings all say ``allow``."""

    def version(self) -> int:
        return 0

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:  # noqa: ARG002
        return Verdict(tuple(entries))

    def know(self, server: McpServer) -> None:
        """There is nothing to know."""

    def close(self) -> None:
        """There is nothing to close."""
