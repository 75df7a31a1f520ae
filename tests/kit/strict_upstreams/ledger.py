"""What the provider remembers having issued: ids, signatures, reasoning items, stored responses."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from .core import Json, canonical, digest


@dataclass
class IssuedReasoning:
    """A reasoning item as issued, with what came right after it."""

    encrypted: str
    follower: str = ""


@dataclass
class Ledger:
    """Everything issued since the fake was started."""

    server_ids: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    thought_calls: set[str] = field(default_factory=set)
    reasoning: dict[str, IssuedReasoning] = field(default_factory=dict)
    needs_reasoning: dict[str, str] = field(default_factory=dict)
    item_of_call: dict[str, str] = field(default_factory=dict)
    stored: dict[str, list[Json]] = field(default_factory=dict)
    stored_items: dict[str, Json] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def mac(self, value: Any) -> str:
        """A keyed hash nobody else can make."""
        return hmac.new(self.key, canonical(value).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def sign(self, model: str, response: str, previous: str, thinking: str, prefix: str) -> str:
        """The signature of a thinking block, bound to everything before it."""
        claims = {"model": model, "response": response, "previous": previous}
        claims["own"] = self.mac(["own", claims, thinking])
        claims["bound"] = self.mac(["bound", claims, prefix])
        return base64.b64encode(json.dumps(claims).encode()).decode()

    def read(self, signature: Any, thinking: Any) -> Json | None:
        """The claims of a signature, or None when it is not one of ours for this text."""
        try:
            claims = json.loads(base64.b64decode(signature, validate=True))
            bound = claims.pop("bound")
            own = claims.pop("own")
        except (ValueError, TypeError, AttributeError, KeyError):
            return None
        if not isinstance(own, str) or not hmac.compare_digest(own, self.mac(["own", claims, thinking])):
            return None
        return {**claims, "own": own, "bound": bound}

    def holds(self, claims: Json, prefix: str) -> bool:
        """Whether the block was made after exactly this prefix."""
        unbound = {key: value for key, value in claims.items() if key != "bound"}
        return hmac.compare_digest(str(claims["bound"]), self.mac(["bound", unbound, prefix]))

    def encrypt(self, item_id: str, text: str) -> str:
        """Opaque content of a reasoning item, tied to its id."""
        return "gAAAAA" + base64.urlsafe_b64encode(f"{item_id}:{self.mac([item_id, text])}".encode()).decode()


@dataclass
class Prefix:
    """All content before a point of a Messages conversation, as thinking blocks are bound to it.

    Thinking blocks and cache marks are left out; a string counts as one text block and neighbouring messages of one
    role count as one. Deferred tools count only once something refers to them.
    """

    tools: list[Json]
    system: list[Json]
    referenced: set[str] = field(default_factory=set)
    previous: str = ""
    _hash: Any = field(default_factory=hashlib.sha256)

    def copy(self) -> Prefix:
        """An independent copy."""
        return Prefix(self.tools, self.system, set(self.referenced), self.previous, self._hash.copy())

    def add(self, role: str, block: Json) -> None:
        """Append a block of any type."""
        if block.get("type") in ("thinking", "redacted_thinking"):
            self.previous = digest(block.get("signature") or block.get("data"))
            return
        self.referenced |= references(block)
        self._hash.update(canonical([role, plain(block)]).encode("utf-8", "surrogatepass"))

    def value(self) -> str:
        """A digest of the prefix."""
        tools = [
            plain(tool) for tool in self.tools if not tool.get("defer_loading") or tool.get("name") in self.referenced
        ]
        return digest([tools, [plain(block) for block in self.system], self._hash.hexdigest()])


def plain(value: Any) -> Any:
    """The value without cache marks, nulls and direct callers, and with text shorthand written out."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned = {
        key: plain(inner)
        for key, inner in value.items()
        if key != "cache_control" and inner is not None and not (key == "caller" and inner == {"type": "direct"})
    }
    if cleaned.get("type") == "tool_result" and isinstance(cleaned.get("content"), str):
        cleaned["content"] = [{"type": "text", "text": cleaned["content"]}]
    if value.get("type") in ("tool_use", "server_tool_use"):
        cleaned["input"] = value.get("input")
    return cleaned


def references(block: Any) -> set[str]:
    """The tool names a block refers to, at any depth that can hold references."""
    found: set[str] = set()
    if not isinstance(block, dict):
        return found
    kind = block.get("type")
    if kind == "tool_reference":
        found.add(str(block.get("tool_name") or block.get("name") or ""))
    if kind in ("tool_addition", "tool_removal"):
        found |= references(block.get("tool"))
    inner = block.get("content") if kind in ("tool_result", "tool_search_tool_result") else None
    if isinstance(inner, dict):
        inner = inner.get("tool_references")
    if isinstance(inner, list):
        for one in inner:
            found |= references(one)
    return found
