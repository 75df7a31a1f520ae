"""Tools: the definition that a model reads, our metadata, and the callback that runs the tool.

A tool's own hints say how much it may change. A source reports the tools that it could not load, each with the reason.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from toolsearch.errors import BadToolError
from toolsearch.option_values import name_list
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import Converter
from toolsearch_indexes.documents import Confidence

EntryKind: TypeAlias = Literal["tool", "skill", "prompt", "resource"]
KINDS: Final[tuple[EntryKind, ...]] = ("tool", "skill", "prompt", "resource")
TOOLS: Final[tuple[EntryKind, ...]] = ("tool",)
FOUND_KINDS: Final[tuple[EntryKind, ...]] = ("tool", "skill")  # kinds that a search finds unless it is told others

NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")

_SPELLED = str.maketrans(  # letters that Unicode does not split into a letter A-Z and an accent
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D",
     "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ł": "l", "Ł": "L"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The part of a tool that a model may read. Treat the mappings as read-only: a definition is shared by every
    session.

    name          unique in a catalog; of A-Z a-z 0-9 _ - and at most 64 characters, as model APIs demand
    input_schema  JSON Schema (2020-12) of the arguments; its root is an object
    server        the MCP server, module or document that the tool came from; its names start with ``<server>__``
    annotations   MCP's hints: readOnlyHint, destructiveHint, idempotentHint, openWorldHint
    requests      requests of users who need the tool, written by its author. They are searched, and no model sees them.
                  Definitions that differ only in their requests are equal
    kind          a skill, a prompt and a resource are found like tools, and read where a tool is called
    text          what else a skill says: its words are searched, and no answer shows them
    """

    name: str
    description: str = ""
    input_schema: JsonObject = field(default_factory=lambda: NO_PARAMETERS)
    title: str = ""
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Json])
    server: str = ""
    tags: tuple[str, ...] = ()
    requests: tuple[str, ...] = field(default=(), compare=False)
    kind: EntryKind = "tool"
    text: str = ""

    def __post_init__(self) -> None:
        # tuple("text") would give one tag per letter, and no rule about the tag would match.
        if not isinstance(cast("object", self.tags), tuple):
            object.__setattr__(self, "tags", name_list(self.tags, "tags", error=BadToolError))
        if not isinstance(cast("object", self.requests), tuple):
            object.__setattr__(self, "requests", name_list(self.requests, "requests", error=BadToolError))

    @property
    def local_name(self) -> str:
        """The name without its server's prefix."""
        local = self.name.removeprefix(f"{self.name_prefix}__")
        return local or self.name if self.server else self.name

    @property
    def name_prefix(self) -> str:
        """The part before ``__`` in the names of this server's tools."""
        return _legal_server(self.server)

    def fingerprint(self) -> str:
        """SHA-256 (hex) over every field that a model, a user or a search could notice a change in."""
        content = [
            self.name, self.title, self.description, self.input_schema, self.output_schema,
            self.annotations, self.server, self.tags,
            *([self.requests] if self.requests else []),  # left out if empty, so that old fingerprints stay valid
            *([] if self.kind == "tool" else [{"kind": self.kind}]),
            *([{"text": self.text}] if self.text else []),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def legal_name(text: str) -> str:
    """Return *text* with each run of characters that tool names may not hold made one ``_``, none at its ends.

    Letters with accents lose these: ``größe`` gives ``grosse``.
    """
    return "_".join(filter(None, _ILLEGAL.split(text if text.isascii() else _without_accents(text))))


_legal_server = lru_cache(maxsize=1_024)(legal_name)  # cached, because many tools share one server


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    return "".join(c for c in apart if not unicodedata.combining(c))


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """Data about a tool that no model sees."""

    return_direct: bool = False  # the result goes to the caller, not back to the model
    timeout_s: float | None = None  # seconds for one call; None: the manager's default
    result_converter: Converter | None = None  # None: the manager makes blocks, text and JSON
    loads_tools: bool = False  # reading this skill loads the tools of its `allowed-tools`; set for folders of skills


class ToolContext(dict[str, Any]):
    """Values that an application passes to its tools and that no model sees: user ids, credentials, connections."""


class ToolCallback(Protocol):
    """Runs a tool. Safe to call concurrently.

    A callback may state the type of its results in an attribute ``return_type``, for converters.
    """

    def call(self, arguments: JsonObject, context: ToolContext) -> object:
        """Run with *arguments*, which fit the tool's input schema, and return any value.

        It may be ``async``; a plain one runs in a worker thread. An ordinary exception is a failed call. Cancellation
        must be let through.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """The changes that settings make to a tool of a server.

    listed_name  the name that it would have here without them
    fixed        arguments that are sent with every call; no caller may send one
    hidden       arguments that nobody may send
    cut          most tokens of a result; None: all of it
    pick         JSON pointers to all that is passed on of a result; (): all of it
    """

    listed_name: str
    fixed: JsonObject = field(default_factory=dict[str, Json], repr=False)
    hidden: frozenset[str] = frozenset()
    cut: int | None = None
    pick: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """The server of a tool, and the tool's name there.

    remote_name  the name that the server itself gives it
    raw          the entry as the server sent it, including unknown fields
    override     what settings change about it; its definition then differs from that in *raw*
    """

    server: str
    remote_name: str
    raw: JsonObject
    override: ToolOverride | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A definition and how to run it; without a callback it can be found and shown, not called.

    source  its origin, for people: ``function statistics.mean``, ``mcp.json#git``, ``api.yaml``
    spec    the argument with which `open_source` finds this tool again from any working directory, or ""
    origin  set for a tool that a server lists; it is not stored
    original  its definition in the catalog, if it is shown under another; rules of a reach apply to this one
    """

    definition: ToolDefinition
    callback: ToolCallback | None = None
    metadata: ToolMetadata = ToolMetadata()
    source: str = ""
    spec: str = ""
    origin: ToolOrigin | None = None
    original: ToolDefinition | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_skill(self) -> bool:
        return self.definition.kind == "skill"

    @property
    def remote_name(self) -> str:
        """The server's own name for it."""
        return self.origin.remote_name if self.origin else self.name

    @property
    def override(self) -> ToolOverride | None:
        """The changes that settings make to it."""
        return self.origin.override if self.origin else None

    @property
    def listed_name(self) -> str:
        """The name by which approvals know it: the one that it would have without settings of its own."""
        return self.override.listed_name if self.override else self.name

    @property
    def is_callable(self) -> bool:
        """Whether anything can run it: its callback, or the server that lists it."""
        return self.callback is not None or self.origin is not None

    @property
    def owner(self) -> str:
        """The owner who would have to rename it, for messages."""
        server = self.definition.server
        return self.source or (f"server {server}" if server else "a definition without a source")


@dataclass(frozen=True, slots=True)
class ToolReference:
    """One search result: enough to choose a tool, without the definition. For *score* and *confidence* see `Hit`.

    is_callable  whether anything can run the tool: one of a JSON listing, or of an OpenAPI document without a caller,
                 can be found and shown, not called
    """

    name: str
    score: float
    summary: str
    confidence: Confidence = "high"
    is_callable: bool = True
    kind: EntryKind = "tool"


@dataclass(frozen=True, slots=True)
class ToolSearchResponse:
    """The best tools and skills that a search found, and *total_matches*: the number of all that fit."""

    references: list[ToolReference]
    total_matches: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """One tool, or one server, that could not be loaded. *reason* is a sentence for people, without secrets."""

    name: str
    source: str
    reason: str


READ_ONLY: Final = "readOnlyHint"
DESTRUCTIVE: Final = "destructiveHint"
IDEMPOTENT: Final = "idempotentHint"
OPEN_WORLD: Final = "openWorldHint"
HINTS = (READ_ONLY, DESTRUCTIVE, IDEMPOTENT, OPEN_WORLD)


class SafetyClass(Enum):
    """What a tool may do, from harmless to dangerous."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"

    def covers(self, other: SafetyClass) -> bool:
        """Whether permission for this class includes *other*."""
        order = list(SafetyClass)
        return order.index(other) <= order.index(self)


def annotations_of(safety: SafetyClass) -> dict[str, Json]:
    """The usual hints for this class. They also say that the tool reaches beyond this machine."""
    reads: dict[str, Json] = {READ_ONLY: safety is SafetyClass.READ}
    destroys: dict[str, Json] = {} if safety is SafetyClass.READ else {DESTRUCTIVE: safety is SafetyClass.DESTRUCTIVE}
    return {**reads, **destroys, OPEN_WORLD: True}


def safety_of(annotations: JsonObject) -> SafetyClass:
    """The class of a tool with these MCP *annotations*, as rules use it.

    Only ``readOnlyHint: true`` makes it READ and only ``destructiveHint: true`` DESTRUCTIVE. In MCP a tool without
    hints is destructive; here it is not, since ``deny: class:destructive`` would then hide nearly all tools. A hint
    that is neither a boolean nor null counts as the worse of its two values.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True:
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is None or destroys is False else SafetyClass.DESTRUCTIVE


def worst_safety_of(annotations: JsonObject) -> SafetyClass:
    """The worst class that a tool with these *annotations* may be in: for deciding whether to ask a person first.

    As in MCP, a tool is destructive unless it says otherwise: READ by ``readOnlyHint: true``, WRITE by
    ``destructiveHint: false``. A tool that claims both to only read and to destroy counts as destructive.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True and (destroys is None or destroys is False):
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is False else SafetyClass.DESTRUCTIVE
