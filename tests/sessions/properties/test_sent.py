"""Whatever happens in a conversation: the lists that its model is sent, read from the requests and messages alone."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.clock import Clock
from tests.kit.session_tools import ALWAYS_SEARCH, SEARCH
from toolsearch import Budget, Catalog, Session, SessionOptions, SessionStore, ToolDefinition, ToolSearch
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.wire import WireFormat

NAMES = [f"tool_{letter}" for letter in "abcdefgh"]
CACHE_S = 300
ENDPOINTS: dict[str, tuple[WireFormat, str]] = {
    "append": ("openai", ""),
    "messages with removals": ("anthropic", "claude-opus-5"),
    "messages": ("openai-responses", "gpt-5"),
    "deferred": ("anthropic", "claude-sonnet-4-5"),
    "fixed": ("anthropic", ""),
}

Step: TypeAlias = tuple[str, Any]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("search"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("search"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("call"), st.sampled_from(NAMES)),
        st.tuples(st.sampled_from(["remove", "put"]), st.sampled_from(NAMES)),
        st.tuples(st.just("tick"), st.sampled_from([1, 100, CACHE_S])),
        st.tuples(st.sampled_from(["end turn", "restart", "compact"]), st.none()),
    ),
    max_size=25,
)


@dataclass
class Life:
    """A conversation with one endpoint, and what its model can read: nothing here looks into the session."""

    mode: str
    budget: Budget
    clock: Clock = field(default_factory=Clock)
    kept: InMemorySessionPersistence = field(default_factory=InMemorySessionPersistence)
    revealed: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    withdrawn_last: set[str] = field(default_factory=set)  # a changed definition comes back with the next change
    lists: list[str] = field(default_factory=list)  # since the history was compacted
    breaks: int = 0
    requested_s: float | None = None
    changed: int = 0
    ids: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.catalog = Catalog([ToolDefinition(name, f"Does {name}") for name in NAMES])
        self.start()
        self.request()

    def start(self) -> None:
        options = SessionOptions(budget=self.budget, pass_through=ALWAYS_SEARCH, cache_ttl_s=CACHE_S)
        store = SessionStore(persistence=self.kept, budget=self.budget, clock=self.clock)
        self.engine = ToolSearch(self.catalog, encoder=None, sessions=store, options=options, clock=self.clock)

    @property
    def session(self) -> Session:
        return self.engine.session("s")

    @property
    def is_warm(self) -> bool:
        return self.requested_s is not None and self.clock() - self.requested_s < CACHE_S

    def take(self, kind: str, what: Any) -> None:
        if kind == "search":
            self.reply(SEARCH, {"query": f"select:{','.join(what)}"})
        elif kind == "call":
            self.reply(what, {})
        elif kind == "remove" and what in self.catalog:
            self.catalog.remove(what)
        elif kind == "put":
            self.changed += 1
            self.catalog.put(ToolDefinition(what, f"Does {what}, version {self.changed}"))
        elif kind == "tick":
            self.clock.now_s += what
        elif kind == "end turn":
            self.session.end_turn()
        elif kind == "compact":
            self.session.compacted()
            self.revealed, self.withdrawn, self.lists, self.requested_s = set(), set(), [], None
        elif kind == "restart":
            self.session.end_turn()  # which writes it
            self.start()
        self.request()

    def reply(self, name: str, arguments: dict[str, Any]) -> None:
        """Run one call, as the endpoint's model would make it, and read what is appended to the conversation."""
        wire_format, _ = ENDPOINTS[self.mode]
        call_id = f"call_{next(self.ids)}"
        if wire_format == "anthropic":
            block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            reply: Any = {"role": "assistant", "content": [block], "stop_reason": "tool_use"}
        elif wire_format == "openai-responses":
            text = json.dumps(arguments)
            reply = [{"type": "function_call", "call_id": call_id, "name": name, "arguments": text}]
        else:
            function = {"name": name, "arguments": json.dumps(arguments)}
            reply = {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        self.withdrawn_last = set()
        for message in asyncio.run(self.session.execute(reply)):
            self.read(message)

    def read(self, message: Any) -> None:
        if message.get("type") == "additional_tools":
            self.revealed |= {tool["name"] for tool in message["tools"]}
        for block in message.get("content") or () if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_addition":
                self.revealed.add(block["tool"]["definition"]["name"])
                self.withdrawn.discard(block["tool"]["definition"]["name"])
            elif block.get("type") == "tool_removal":
                self.withdrawn.add(block["tool"]["name"])
                self.withdrawn_last.add(block["tool"]["name"])
            elif block.get("type") == "tool_result":
                found = block["content"] if isinstance(block["content"], list) else []
                self.revealed |= {each["tool_name"] for each in found if each["type"] == "tool_reference"}

    def request(self) -> None:
        wire_format, model = ENDPOINTS[self.mode]
        tools = self.session.request(wire_format, model=model)["tools"]
        listed = json.dumps([tool for tool in tools if not tool.get("defer_loading")])
        before = self.lists[-1] if self.lists else None
        if before is not None and self.mode == "append" and self.is_warm:
            self.breaks += listed != before
            if self.budget.max_sent_tools is None:
                assert listed.startswith(before[:-1]) or len(names_of(listed)) == len(names_of(before))
                assert set(names_of(before)) <= set(names_of(listed))
        elif before is not None and self.mode != "append":
            assert listed == before
        self.lists.append(listed)
        self.requested_s = self.clock()
        callable_now = {*names_of(listed), *self.revealed} - self.withdrawn
        missing = set(self.session.discovered) - callable_now - self.withdrawn_last
        assert "callTool" in callable_now or not missing
        if self.mode == "deferred":
            assert self.revealed <= {tool["name"] for tool in tools}
        assert self.session.savings().cache_breaks == self.breaks


def names_of(listed: str) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in json.loads(listed)]


@pytest.mark.parametrize("mode", ENDPOINTS)
@settings(max_examples=20, deadline=None)
@given(life=steps)
def test_lists_stay_or_grow_and_every_discovered_tool_can_be_called(mode: str, life: list[Step]) -> None:
    living = Life(mode, Budget(max_tools=3, low_water=0.5, max_sent_tools=None))
    for kind, what in life:
        living.take(kind, what)


@pytest.mark.parametrize("mode", ENDPOINTS)
@settings(max_examples=20, deadline=None)
@given(life=steps)
def test_the_hard_limit_bounds_what_the_model_is_sent(mode: str, life: list[Step]) -> None:
    living = Life(mode, Budget(max_tools=3, low_water=0.5, max_sent_tools=4))
    for kind, what in life:
        living.take(kind, what)
        visible = living.session.state.sent.now.visible.keys() - {SEARCH, "callTool"}
        assert len(visible) <= 4
