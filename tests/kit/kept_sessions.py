"""Sessions that are kept: a store that counts how often it is read and written, and an engine over it."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from toolsearch import (
    Catalog,
    PassThrough,
    Principal,
    SessionOptions,
    SessionStore,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.sessions.session_eviction import NeverEvictStrategy
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.storage.sessions import SessionPersistence, StoredSession

SEARCH = "toolSearchTool"
NAMES = ["send_mail", "list_events", "pay_bill", "play_music"]
ACME = Principal("acme")


class Counted(InMemorySessionPersistence):
    """Counts how often a session is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.done: Counter[str] = Counter()

    def load(self, session_id: str) -> StoredSession | None:
        self.done["read"] += 1
        return super().load(session_id)

    def save(self, session_id: str, text: str, *, version: int) -> int:
        self.done["written"] += 1
        return super().save(session_id, text, version=version)


def engine_of(kept: SessionPersistence | None = None, *tools: Callable[..., Any], **options: Any) -> ToolSearch:
    """What one process has: an engine over NAMES and *tools*, and its own store over what is *kept* for all."""
    definitions = [ToolDefinition(name, name.replace("_", " ").title()) for name in NAMES]
    chosen = SessionOptions(pass_through=PassThrough(max_tools=0), **options)
    store = SessionStore(NeverEvictStrategy(), kept, budget=chosen.budget)
    return ToolSearch(Catalog([*definitions, *tools]), encoder=None, sessions=store, options=chosen)


def select(*names: str) -> dict[str, Any]:
    return {"name": SEARCH, "arguments": {"query": f"select:{','.join(names)}"}}


def stored(kept: SessionPersistence, session_id: str = "a") -> list[str]:
    return list(SessionStore(persistence=kept).get(session_id).discovered.tools)
