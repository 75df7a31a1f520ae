"""Whatever two processes do with one session at the same time, in whatever order: what becomes of it."""

from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Budget, Catalog, PassThrough, SessionOptions, SessionStore, ToolDefinition, ToolSearch
from toolsearch.access.reach import Reach
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.session_eviction import LruEvictionStrategy
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.storage.memory import InMemorySessionPersistence

NAMES = [f"tool_{letter}" for letter in "abcdef"]
CAP = 3

Step: TypeAlias = tuple[int, str, str]  # which process, what it does, and with which tool


class Process:
    """One process with an engine of its own, and at most one unit of work that it has begun and not ended."""

    def __init__(self, kept: InMemorySessionPersistence, budget: Budget) -> None:
        options = SessionOptions(budget=budget, pass_through=PassThrough(max_tools=0))
        self.kept = kept
        self.engine = ToolSearch(
            Catalog([ToolDefinition(name, f"Does {name}") for name in NAMES]),
            encoder=None,
            sessions=SessionStore(LruEvictionStrategy(1), kept, budget=budget),
            options=options,
        )
        self.base: set[str] = set()  # what was stored when this process last read or wrote the session
        self._unit: UnitOfWork | None = None
        self._conversation: Conversation | None = None

    @property
    def conversation(self) -> Conversation:
        if self._conversation is None:
            self._unit = self.engine.conversation("s")
            self._conversation = self._unit.__enter__()
            self.base = set(stored(self.kept))
        return self._conversation

    def take(self, kind: str, name: str) -> None:
        conversation = self.conversation
        if kind == "find":
            conversation.search(f"select:{name}")
        elif kind == "forget":
            conversation.state.discovered.drop([name])
        elif kind == "narrow":
            conversation.admit(conversation.state.reach & Reach.parse(deny=[name]), ())
        elif kind == "end turn":
            conversation.end_turn()
        elif kind == "leave memory":
            before = self.kept.load("s")
            self.engine.session("another one")
            if self.kept.load("s") != before:  # it was written on the way
                self.base = set(stored(self.kept))

    def commit(self) -> None:
        """End the unit of work, and compare what is stored then with what it should be."""
        if self._unit is None or self._conversation is None:
            return
        ours, theirs = set(self._conversation.discovered), set(stored(self.kept))
        merged = (ours | theirs) - (self.base - ours) - (self.base - theirs)
        self._unit.__exit__(None, None, None)
        after = stored(self.kept)
        self.base = set(after)
        assert set(after) <= merged
        if self.engine.options.budget.max_tools is None:
            assert set(after) == {name for name in merged if name not in denied(self.kept)}
        self._unit = self._conversation = None


def stored(kept: InMemorySessionPersistence) -> list[str]:
    if "s" not in kept.ids():
        return []
    return list(SessionStore(persistence=kept).get("s").discovered.tools)


def denied(kept: InMemorySessionPersistence) -> set[str]:
    return {rule.pattern for rule in SessionStore(persistence=kept).get("s").reach.deny}


steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["find", "find", "forget", "narrow", "end turn", "leave memory", "commit", "commit"]),
        st.sampled_from(NAMES),
    ),
    max_size=30,
)


def live(life: list[Step], budget: Budget) -> tuple[InMemorySessionPersistence, list[Process], set[str]]:
    """Let two processes take these steps, and end what they have begun; return with what was denied on the way."""
    kept, narrowed = InMemorySessionPersistence(), set[str]()
    processes = [Process(kept, budget), Process(kept, budget)]
    for number, kind, name in life:
        if kind == "commit":
            processes[number].commit()
        else:
            processes[number].take(kind, name)
            narrowed |= {name} if kind == "narrow" else set()
    for process in processes:
        process.commit()
    return kept, processes, narrowed


@settings(max_examples=100, deadline=None)
@given(steps)
def test_nothing_found_is_lost_and_nothing_removed_comes_back(life: list[Step]) -> None:
    """`Process.commit` holds each result against the union of both sides minus what either has removed."""
    kept, processes, narrowed = live(life, Budget(max_tools=None, max_tokens=None))

    if "s" in kept.ids():
        assert denied(kept) == narrowed  # a stale copy widens no reach
        assert narrowed.isdisjoint(stored(kept))
        for process in processes:  # and all see the same then, in the same order
            assert process.engine.session("s").discovered == stored(kept)


@settings(max_examples=100, deadline=None)
@given(steps)
def test_the_budget_holds_once_the_turn_has_ended_whoever_ends_it(life: list[Step]) -> None:
    kept, processes, narrowed = live(life, Budget(max_tools=CAP, max_tokens=None, low_water=1))
    for process in processes:
        process.engine.session("s").end_turn()  # what was found in a turn is spared at its end
        process.engine.session("s").end_turn()
    assert len(stored(kept)) <= CAP
    assert narrowed.isdisjoint(stored(kept))
    for process in processes:
        assert process.engine.session("s").discovered == stored(kept)


@settings(max_examples=50, deadline=None)
@given(steps)
def test_all_that_both_have_counted_is_counted(life: list[Step]) -> None:
    kept, _, _ = live(life, Budget())

    if "s" in kept.ids():
        searches = SessionStore(persistence=kept).get("s").counters.searches
        assert searches == sum(kind == "find" for _, kind, _ in life)
