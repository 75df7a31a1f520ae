import pytest

from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.errors import BadSettingError, CallLimitError, RepeatedCallError


def count(limits: CallLimits, *names: str) -> TurnCounter:
    turn = TurnCounter()
    for name in names:
        turn.count(name, limits)
    return turn


def test_a_tool_may_be_called_as_often_as_its_limit_says_and_no_more():
    limits = CallLimits(per_tool=2)
    turn = count(limits, "a", "a", "b")

    with pytest.raises(CallLimitError, match="the tool 'a' may be called 2 times a turn"):
        turn.count("a", limits)


def test_an_override_goes_before_the_general_limit():
    limits = CallLimits(per_tool=1, per_tool_overrides={"a": 0, "b": None})
    turn = count(limits, "b", "b", "b", "c")

    with pytest.raises(CallLimitError, match="0 times"):
        turn.count("a", limits)


def test_the_total_is_over_all_tools():
    limits = CallLimits(total=3)
    turn = count(limits, "a", "b", "c")

    with pytest.raises(CallLimitError, match="3 tool calls may be made"):
        turn.count("d", limits)


def test_excluded_tools_are_neither_limited_nor_counted():
    limits = CallLimits(per_tool=1, total=1, excluded=frozenset({"free"}))

    count(limits, "free", "free", "a", "free")


def test_a_refused_call_is_not_counted():
    limits = CallLimits(per_tool=1, total=2)
    turn = count(limits, "a")
    with pytest.raises(CallLimitError):
        turn.count("a", limits)

    turn.count("b", limits)


def test_by_default_a_tool_may_be_called_40_times_and_all_together_150_times():
    limits = CallLimits()
    turn = count(limits, *[f"tool{n % 4}" for n in range(150)])

    with pytest.raises(CallLimitError, match="150"):
        turn.count("tool4", limits)
    with pytest.raises(CallLimitError, match="40"):
        count(limits, *["a"] * 41)


def test_without_limits_nothing_is_refused():
    count(CallLimits(per_tool=None, total=None), *["a"] * 1_000)


def test_a_negative_limit_is_refused():
    with pytest.raises(BadSettingError, match="'per_tool' is -1"):
        CallLimits(per_tool=-1)


def repeat(limits: CallLimits, *calls: tuple[str, dict[str, object]]) -> TurnCounter:
    turn = TurnCounter()
    for name, arguments in calls:
        turn.count_repeat(name, arguments, limits)
    return turn


def test_the_same_call_may_be_made_three_times_in_a_row_and_no_more():
    limits = CallLimits()
    turn = repeat(limits, *[("status", {"id": 1, "full": True})] * 3)

    with pytest.raises(RepeatedCallError, match="'status' was called 3 times in a row with these very arguments"):
        turn.count_repeat("status", {"full": True, "id": 1}, limits)


def test_other_arguments_or_another_tool_in_between_make_a_call_new():
    status, other, build = ("status", {"id": 1}), ("status", {"id": 2}), ("build", {})

    repeat(CallLimits(repeats=1), status, other, status, build, status)


def test_repeats_can_be_allowed_for_one_tool_or_for_all():
    poll = ("poll", {"id": 1})

    repeat(CallLimits(repeats=None), *[poll] * 10)
    repeat(CallLimits(excluded=frozenset({"poll"})), *[poll] * 10)


def test_what_to_do_at_a_limit_is_one_of_two():
    with pytest.raises(BadSettingError, match="on_breach is 'stop'; use one of error, raise"):
        CallLimits(on_breach="stop")
