import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.clock import Clock
from toolsearch.discovery.discovered_tools import Budget, DiscoveredTool, DiscoveredTools
from toolsearch.errors import BadSettingError


def find(tools: DiscoveredTools, clock: Clock, names: str, tokens: int = 10) -> None:
    """Find one tool per letter, a second apart."""
    for name in names:
        clock.now_s += 1
        tools.add({name: tokens})


def order(tools: DiscoveredTools) -> str:
    return "".join(tools.tools)


def test_tools_stay_in_the_order_in_which_they_were_first_found(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock)

    assert tools.add({"b": 10, "a": 20}) == ("b", "a")
    assert tools.add({"a": 25, "c": 30}) == ("c",)

    assert tools.tools == {"b": DiscoveredTool(10, 0), "a": DiscoveredTool(25, 0), "c": DiscoveredTool(30, 0)}
    assert (len(tools), tools.tokens, "c" in tools, "d" in tools) == (3, 65, True, False)


def test_over_the_cap_a_turn_ends_with_three_quarters_of_it(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=8), clock)
    find(tools, clock, "abcdefgh")
    tools.end_turn()
    find(tools, clock, "i")

    assert tools.end_turn() == ("a", "b", "c")
    assert order(tools) == "defghi"
    assert tools.evicted == 3


def test_at_the_cap_nothing_goes(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=8), clock)
    find(tools, clock, "abcdefgh")

    assert (tools.end_turn(), tools.end_turn()) == ((), ())


def test_the_token_cap_is_met_in_the_same_way(clock: Clock) -> None:
    """410 tokens are over 400; 310 are still over the 300 aimed at, 210 are not."""
    tools = DiscoveredTools(Budget(max_tokens=400), clock)
    find(tools, clock, "abcd", tokens=100)
    tools.end_turn()
    find(tools, clock, "e", tokens=10)

    assert tools.end_turn() == ("a", "b")
    assert tools.tokens == 210


def test_what_was_used_longest_ago_goes_first_but_the_order_stays(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=4), clock)
    find(tools, clock, "abcd")
    tools.end_turn()
    clock.now_s += 1
    tools.touch("a")
    find(tools, clock, "be")

    assert tools.end_turn() == ("c", "d")
    assert order(tools) == "abe"


def test_what_was_never_called_goes_before_what_was_called_longer_ago(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=3, low_water=1), clock)
    find(tools, clock, "a")
    tools.touch("a")
    find(tools, clock, "bc")
    for _ in range(3):
        tools.end_turn()
    find(tools, clock, "d")

    assert tools.end_turn() == ("b",)


def test_what_the_last_turn_found_or_called_goes_after_all_that_is_older(clock: Clock) -> None:
    """Of a, b and c, which were called at first, b was called in the last turn again, and d was found in it."""
    tools = DiscoveredTools(Budget(max_tools=4, low_water=0.5), clock)
    find(tools, clock, "abc")
    for name in "abc":
        tools.touch(name)
    for _ in range(3):
        tools.end_turn()
    find(tools, clock, "d")
    clock.now_s += 1
    tools.touch("b")
    tools.end_turn()
    find(tools, clock, "e")

    assert tools.end_turn() == ("a", "c", "d")
    assert order(tools) == "be"


def test_tools_go_by_turn_then_by_calls_then_by_use_and_running_ones_and_pins_never(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock, pins={"pin"})
    for name in ("pin", "running", "called long ago", "called now"):
        tools.add({name: 10})
        tools.touch(name)
    tools.add({"called long ago": 10, "found again": 10})  # what is found again has been called all the same
    for name in ("found long ago", "found again"):
        clock.now_s += 1
        tools.add({name: 10})
    for name in ("found two turns ago", "found last turn"):
        tools.end_turn()
        clock.now_s += 1
        tools.add({name: 10})
    tools.end_turn()
    tools.touch("called now")
    clock.now_s += 1
    tools.add({"found now": 10})
    tools.begin_call("running")

    assert [tools.keep_within(Budget(max_tools=most, low_water=1)) for most in range(8, 0, -1)] == [
        ("found long ago",),
        ("found again",),
        ("found two turns ago",),
        ("called long ago",),
        ("found last turn",),
        ("found now",),
        ("called now",),
        (),
    ]
    assert list(tools.tools) == ["pin", "running"]


def test_what_is_idle_for_too_long_is_spared_while_it_runs(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(ttl_s=60), clock)
    find(tools, clock, "ab")
    tools.end_turn()
    tools.begin_call("a")
    clock.now_s += 100

    assert tools.begin_turn() == ("b",)
    tools.end_call("a")
    clock.now_s += 60
    assert tools.begin_turn() == ("a",)


def test_ties_go_by_place(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=3, low_water=0.5), clock)
    tools.add({"c": 1, "a": 1, "b": 1})
    for _ in range(3):
        tools.end_turn()
    tools.add({"d": 1})

    assert tools.end_turn() == ("c", "a", "b")


def test_a_hard_limit_takes_also_what_this_turn_has_found_but_last(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=None, max_sent_tools=2, low_water=1), clock, pins={"p"})
    find(tools, clock, "pa")
    for _ in range(3):
        tools.end_turn()
    find(tools, clock, "bc")

    assert tools.keep_within(Budget(max_sent_tools=2, low_water=1).sent) == ("a", "b")
    assert (order(tools), tools.evicted) == ("pc", 2)


def test_what_has_been_idle_for_too_long_makes_room_so_that_less_has_to_go(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=4, ttl_s=60, low_water=0.5), clock)
    find(tools, clock, "ab")
    tools.end_turn()
    clock.now_s += 30
    find(tools, clock, "cd")
    tools.end_turn()
    clock.now_s += 30
    find(tools, clock, "e")

    assert tools.end_turn() == ("a", "b")
    assert order(tools) == "cde"


def test_a_turn_that_has_lost_all_that_it_found_does_not_count(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock)
    find(tools, clock, "a")
    tools.drop("a")
    tools.begin_turn()

    assert tools.turn == 0


def test_of_two_processes_the_later_use_counts_and_a_call_in_either() -> None:
    base = {"a": DiscoveredTool(10, 0.0), "b": DiscoveredTool(10, 0.0), "gone": DiscoveredTool(10, 0.0)}
    tools = DiscoveredTools(Budget(), Clock(), tools={**base, "a": DiscoveredTool(10, 5.0, turn=2)})
    tools.add({"gone": 10})
    tools.merge(base, {"a": DiscoveredTool(12, 3.0, is_called=True, turn=1), "b": base["b"]})

    assert tools.tools == {"a": DiscoveredTool(10, 5.0, is_called=True, turn=2), "b": base["b"]}
    tools.begin_turn()
    assert tools.turn == 0  # what this turn had found is gone


def test_nothing_goes_within_a_turn(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=2), clock)
    find(tools, clock, "abcdefgh")

    assert order(tools) == "abcdefgh"


def test_what_a_turn_found_outlives_its_end_even_over_the_cap(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=2, low_water=1), clock)
    find(tools, clock, "ab")
    tools.end_turn()
    find(tools, clock, "acd")

    assert tools.end_turn() == ("b",)
    assert order(tools) == "acd"
    assert tools.end_turn() == ("a",)


def test_a_tool_that_runs_is_spared_until_its_last_call_ends(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=1, low_water=0), clock)
    find(tools, clock, "ab")
    tools.begin_call("a")
    tools.begin_call("a")
    tools.end_turn()

    tools.end_call("a")
    assert tools.end_turn() == ("b",)
    find(tools, clock, "b")
    tools.end_turn()
    tools.end_call("a")
    assert tools.end_turn() == ("a", "b")


def test_the_end_of_a_call_that_never_began_protects_and_breaks_nothing(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock, tools={"a": DiscoveredTool(10, 0)})

    tools.end_call("a")
    tools.end_call("unknown")

    assert order(tools) == "a"


def test_pins_are_never_evicted_and_count_towards_the_budget(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=2, low_water=0.5, ttl_s=5), clock, pins={"p", "q"})
    find(tools, clock, "pxqy")
    tools.end_turn()
    clock.now_s += 100

    assert tools.end_turn() == ("x", "y")
    assert order(tools) == "pq"


def test_a_tool_goes_once_it_has_been_idle_for_the_ttl(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(ttl_s=60), clock)
    find(tools, clock, "ab")
    tools.end_turn()
    clock.now_s = 60
    assert tools.begin_turn() == ()
    tools.touch("a")

    clock.now_s = 62
    assert tools.begin_turn() == ("b",)
    clock.now_s = 120
    assert tools.begin_turn() == ("a",)


def test_beginning_turns_is_enough_to_have_them_ended(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=2), clock)
    find(tools, clock, "abc")

    assert tools.begin_turn() == ()
    find(tools, clock, "d")
    assert tools.begin_turn() == ("a", "b", "c")


def test_a_turn_that_ended_does_not_lose_what_it_found_when_the_next_one_begins(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=2), clock)
    find(tools, clock, "abc")
    tools.end_turn()

    assert tools.begin_turn() == ()


def test_what_is_retained_are_the_tools_named_the_pins_and_those_that_run(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock, pins={"p"})
    find(tools, clock, "apbcd")
    tools.begin_call("b")

    assert tools.retain(["c", "never here"]) == ("a", "d")
    assert order(tools) == "pbc"


def test_a_tool_gone_from_the_catalog_goes_at_once_whatever_protects_it(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(), clock, pins={"a"})
    find(tools, clock, "abc")
    tools.begin_call("b")

    assert tools.drop(["b", "a", "never here"]) == ("a", "b")
    assert tools.drop(["b"]) == ()
    assert order(tools) == "c"
    assert tools.evicted == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_tools", 0),
        ("max_tokens", -1),
        ("ttl_s", 0.0),
        ("ttl_s", float("nan")),
        ("low_water", 1.5),
        ("max_sent_tools", 0),
        ("max_sent_tokens", 0),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(setting: str, value: float) -> None:
    with pytest.raises(BadSettingError, match=f"{setting} must be"):
        Budget(**{setting: value})


def test_without_bounds_nothing_is_ever_evicted(clock: Clock) -> None:
    tools = DiscoveredTools(Budget(max_tools=None, max_tokens=None), clock)
    tools.add({str(i): 1_000 for i in range(1_000)})
    tools.end_turn()
    clock.now_s = 1e9

    assert tools.end_turn() == ()


NAMES = st.sampled_from("abcdefgh")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(NAMES, max_size=4)),
        st.tuples(st.sampled_from(["touch", "begin_call", "end_call", "drop"]), NAMES),
        st.tuples(st.sampled_from(["begin_turn", "end_turn"])),
        st.tuples(st.just("tick"), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_order_changes_by_eviction_and_removal_only(steps: list[tuple]) -> None:
    """After each step: what was there and has not been reported gone, in its order, then what is new."""
    clock = Clock()
    tools = DiscoveredTools(Budget(max_tools=4, max_tokens=60, ttl_s=30), clock, pins={"a"})
    expected: list[str] = []
    for step, *arguments in steps:
        gone: tuple[str, ...] = ()
        if step == "tick":
            clock.now_s += arguments[0]
        elif step == "add":
            expected += tools.add(dict.fromkeys(arguments[0], 10))
        elif step in ("begin_turn", "end_turn", "drop"):
            gone = getattr(tools, step)(*arguments)
            assert step == "drop" or "a" not in gone
        else:
            getattr(tools, step)(*arguments)
        expected = [name for name in expected if name not in gone]

        assert list(tools.tools) == expected
