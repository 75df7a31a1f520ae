import pytest

from tests.kit.clock import Clock
from toolsearch import (
    AlwaysEvictStrategy,
    CompositeEvictionStrategy,
    LruEvictionStrategy,
    NeverEvictStrategy,
    TtlEvictionStrategy,
)
from toolsearch.errors import BadSettingError


def test_lru_forgets_the_session_used_longest_ago_once_there_are_too_many() -> None:
    lru = LruEvictionStrategy(max_sessions=2)

    assert [lru.on_access(session) for session in "abab"] == [frozenset()] * 4
    assert lru.on_access("c") == {"a"}


def test_lru_takes_an_access_as_a_use() -> None:
    lru = LruEvictionStrategy(max_sessions=2)
    for session in "aba":
        lru.on_access(session)

    assert lru.on_access("c") == {"b"}


def test_lru_of_one_session_never_forgets_the_one_in_use() -> None:
    lru = LruEvictionStrategy(max_sessions=1)

    assert [lru.on_access(session) for session in "aab"] == [frozenset(), frozenset(), {"a"}]


def test_lru_has_room_again_after_a_removal() -> None:
    lru = LruEvictionStrategy(max_sessions=2)
    lru.on_access("a")
    lru.on_access("b")
    lru.on_removed("a")

    assert lru.on_access("c") == frozenset()
    assert lru.on_access("d") == {"b"}


def test_lru_keeps_a_thousand_sessions_unless_told_otherwise() -> None:
    lru = LruEvictionStrategy()

    assert not any(lru.on_access(str(i)) for i in range(1_000))
    assert lru.on_access("1000") == {"0"}


def test_ttl_forgets_what_has_been_idle_for_all_of_it(clock: Clock) -> None:
    """Idle for exactly ttl_s seconds is too long; one second less is not."""
    ttl = TtlEvictionStrategy(60, clock)
    ttl.on_access("a")
    ttl.on_access("b")
    clock.now_s = 1
    ttl.on_access("c")

    clock.now_s = 60
    assert ttl.on_access("d") == {"a", "b"}
    assert ttl.on_access("d") == frozenset()


def test_ttl_never_forgets_the_session_in_use(clock: Clock) -> None:
    ttl = TtlEvictionStrategy(60, clock)
    ttl.on_access("a")
    clock.now_s = 1_000

    assert ttl.on_access("a") == frozenset()


def test_ttl_starts_again_at_each_access_and_ends_with_a_removal(clock: Clock) -> None:
    ttl = TtlEvictionStrategy(60, clock)
    ttl.on_access("a")
    ttl.on_access("b")
    clock.now_s = 59
    ttl.on_access("a")
    ttl.on_removed("b")
    clock.now_s = 118

    assert ttl.on_access("c") == frozenset()


def test_a_composite_forgets_what_any_of_its_strategies_would(clock: Clock) -> None:
    both = CompositeEvictionStrategy(LruEvictionStrategy(2), TtlEvictionStrategy(60, clock))
    both.on_access("a")
    both.on_access("b")
    assert both.on_access("c") == {"a"}

    clock.now_s = 60
    assert both.on_access("d") == {"a", "b", "c"}, "the store has not yet told the TTL strategy that a is gone"


def test_a_composite_tells_all_of_its_strategies_of_a_removal(clock: Clock) -> None:
    both = CompositeEvictionStrategy(LruEvictionStrategy(2), TtlEvictionStrategy(60, clock))
    both.on_access("a")
    both.on_access("b")
    both.on_removed("a")
    clock.now_s = 60

    assert both.on_access("c") == {"b"}


def test_always_names_the_session_in_use_in_a_composite_too() -> None:
    assert AlwaysEvictStrategy().on_access("a") == {"a"}
    assert CompositeEvictionStrategy(NeverEvictStrategy(), AlwaysEvictStrategy()).on_access("a") == {"a"}


def test_never_forgets_nothing() -> None:
    never = NeverEvictStrategy()

    assert not any(never.on_access(str(i)) for i in range(2_000))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LruEvictionStrategy(0),
        lambda: TtlEvictionStrategy(0),
        lambda: TtlEvictionStrategy(float("nan")),
        CompositeEvictionStrategy,
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused(make) -> None:
    with pytest.raises(BadSettingError):
        make()
