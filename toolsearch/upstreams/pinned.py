"""What trust judges of a server: each entry that it lists, of whatever kind, by the name that the server gives it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import SEPARATOR, namespaced


class Kind(Enum):
    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "resource template"
    INSTRUCTIONS = "instructions"  # what the server says of itself; each has one at most


class Entry(Protocol):
    """*remote_name* is what the server knows it by, *name* what people are told."""

    @property
    def server(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def remote_name(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def raw(self) -> JsonObject: ...

    def pin(self) -> str:
        """Another one once anything in the entry has changed that a person has looked at."""
        ...


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """An entry that is no tool. *remote_name* is a prompt's name, the URI of a resource or template, or empty."""

    server: str
    kind: Kind
    remote_name: str
    raw: JsonObject

    @property
    def name(self) -> str:
        return shown_name(self.server, self.kind, self.remote_name)

    def pin(self) -> str:
        """SHA-256 (hex) over the server's name, the kind and the entry; what follows a resource's contents, its size
        and when it was last modified, does not count.
        """
        steady = _without_contents(self.raw) if self.kind is Kind.RESOURCE else self.raw
        return pin_of([self.server, self.kind.value, steady])


def shown_name(server: str, kind: Kind, remote_name: str) -> str:
    """What people are told, and may say themselves: ``git__log``, ``git__file:///README``, or the server's own name."""
    if kind in (Kind.TOOL, Kind.PROMPT):
        return namespaced(server, remote_name)
    return f"{server}{SEPARATOR}{remote_name}" if remote_name else server


def pin_of(document: Any) -> str:
    """SHA-256 (hex) of *document*; key order and white space do not count."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_contents(raw: JsonObject) -> JsonObject:
    """A number and a date can say nothing to a model; whatever else stands in their place counts."""
    kept = {key: value for key, value in raw.items() if key != "size" or not isinstance(value, int | float)}
    annotations = kept.get("annotations")
    if is_object(annotations) and _is_date(annotations.get("lastModified")):
        kept["annotations"] = {key: value for key, value in annotations.items() if key != "lastModified"}
    return kept


def _is_date(value: object) -> bool:
    try:
        datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


KEYS: Mapping[Kind, str] = {Kind.PROMPT: "name", Kind.RESOURCE: "uri", Kind.TEMPLATE: "uriTemplate"}


def content_entry(server: str, kind: Kind, raw: JsonObject) -> ContentEntry:
    """The entry *raw*, which has what its kind is known by."""
    return ContentEntry(server, kind, str(raw[KEYS[kind]]) if kind in KEYS else "", raw)


def instructions_entry(server: str, text: str) -> ContentEntry:
    return ContentEntry(server, Kind.INSTRUCTIONS, "", {"instructions": text})
