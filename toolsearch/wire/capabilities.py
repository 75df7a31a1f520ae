"""What model APIs take, by model and cloud: the one place that knows. Each row names its source and its date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

RevealMode: TypeAlias = Literal["messages", "deferred", "fixed", "append"]
"""How found tools reach the model.

messages  as the provider's own additions in the midst of a conversation
deferred  all tools are in the list from the start, deferred; the answer to a search loads some
fixed     the answer holds the definitions, and one call tool runs what was found
append    they are appended to the tool list
"""

RevealSetting: TypeAlias = Literal["auto", "messages", "deferred", "fixed", "append"]

Cloud: TypeAlias = Literal["", "azure", "bedrock", "vertex"]
"""Who serves the model; "" is the API's own provider."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request goes. *model* "" is an unknown one."""

    wire_format: str
    model: str = ""
    cloud: Cloud = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model takes at one endpoint.

    modes             how tools can be revealed, best first; none of these is refused
    headers           what the request needs to say for a mode, as HTTP headers by name
    removals          whether messages can withdraw tools
    forced_choice     whether a tool choice may force a call
    system_in_place   whether a system message may stand in the midst of a conversation
    binds_thinking    whether thinking is bound to the tool list, the system text and all earlier messages
    tools_on_chat     whether Chat Completions takes function tools while the model reasons
    native_schema     whether answers can be held to a schema
    max_deferred      tools that one request may defer
    max_tools         tools that one request may list; None: no bound is known
    cache_s           how long a cached prompt lasts at least, in seconds since its last use
    source            where this is known from, and since when
    """

    modes: tuple[RevealMode, ...]
    headers: Mapping[RevealMode, Mapping[str, str]] = field(default_factory=dict[RevealMode, Mapping[str, str]])
    removals: bool = False
    forced_choice: bool = True
    system_in_place: bool = False
    binds_thinking: bool = False
    tools_on_chat: bool = True
    native_schema: bool = False
    max_deferred: int = 10_000
    max_tools: int | None = None
    cache_s: float = 300.0
    source: str = ""


@dataclass(frozen=True, slots=True)
class _Family:
    """Claude or GPT models by name: *families* and the versions from *since* to *until*, both included."""

    families: frozenset[str]
    since: tuple[int, int]
    until: tuple[int, int] = (99, 99)

    def has(self, family: str, version: tuple[int, int]) -> bool:
        return family in self.families and self.since <= version <= self.until


_ALL_CLAUDE = frozenset({"opus", "sonnet", "haiku", "fable", "mythos"})
_TOOL_CHANGES = (
    _Family(frozenset({"opus"}), (4, 8)),
    _Family(frozenset({"fable", "mythos"}), (5, 0)),
    _Family(frozenset({"sonnet", "haiku"}), (5, 5)),
)
_TOOL_REFERENCES = (_Family(_ALL_CLAUDE, (4, 5)),)
_NO_FORCED_CHOICE = (
    _Family(frozenset({"fable", "mythos"}), (5, 1)),
    _Family(frozenset({"opus", "sonnet", "haiku"}), (5, 5)),
)
_INLINE_TOOLS = {"anthropic-beta": "inline-tools-2026-09-15"}
_UNKNOWN: Mapping[str, Capabilities] = {
    "anthropic": Capabilities(("fixed", "append"), source="fixed: nothing of the request changes"),
    "openai": Capabilities(("append", "fixed"), cache_s=3_600.0, source="append: only the cache is lost"),
    "openai-responses": Capabilities(("append", "fixed"), cache_s=3_600.0, source="append: only the cache is lost"),
    "mcp": Capabilities(("append", "fixed"), source="clients list anew"),
}


def capabilities_of(endpoint: Endpoint) -> Capabilities:
    """What *endpoint* takes. A model that is not known gets what no model refuses."""
    unknown = _UNKNOWN[endpoint.wire_format]
    if endpoint.wire_format == "anthropic":
        return _claude(endpoint, unknown)
    if endpoint.wire_format == "openai-responses" and not endpoint.cloud and endpoint.model.startswith("gpt-"):
        return replace(unknown, modes=("messages", "append", "fixed"))
    return unknown


def _claude(endpoint: Endpoint, unknown: Capabilities) -> Capabilities:
    family, version = _claude_version(endpoint.model)
    forced = not any(each.has(family, version) for each in _NO_FORCED_CHOICE)
    if not endpoint.cloud and any(each.has(family, version) for each in _TOOL_CHANGES):
        modes: tuple[RevealMode, ...] = ("messages", "deferred", "fixed")
        return replace(unknown, modes=modes, headers={"messages": _INLINE_TOOLS}, removals=True, forced_choice=forced)
    if any(each.has(family, version) for each in _TOOL_REFERENCES):
        return replace(unknown, modes=("deferred", "fixed", "append"), forced_choice=forced)
    return unknown


def _claude_version(model: str) -> tuple[str, tuple[int, int]]:
    _, _, rest = model.lower().replace("@", "-").partition("claude-")
    family, *words = rest.split("-")
    numbers = [int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else 0 for word in words]
    major, minor, *_ = [*numbers, 0, 0]
    return family, (major, minor)
