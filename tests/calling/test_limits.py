import pytest

from toolsearch import CallLimits, ToolResult, TurnCounter
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


Call = tuple[str, dict[str, object]]


def key_of(call: Call) -> str:
    return TurnCounter().check_repeat(*call, CallLimits())


def gave(call: Call, text: str = "pending", **more: object) -> tuple[str, ToolResult]:
    return key_of(call), ToolResult("1", call[0], ({"type": "text", "text": text},), **more)


def repeat(limits: CallLimits, *calls: Call, turn: TurnCounter | None = None) -> TurnCounter:
    """Make *calls*, each in a reply of its own; all give the same."""
    turn = turn or TurnCounter()
    for call in calls:
        key = turn.check_repeat(*call, limits)
        turn.note_results([(key, gave(call)[1])])
    return turn


STATUS: Call = ("status", {"id": 1, "full": True})


def test_the_same_call_may_be_made_three_times_in_a_row_and_no_more():
    limits = CallLimits()
    turn = repeat(limits, *[STATUS] * 3)

    for _ in range(2):  # nor may it a moment later
        with pytest.raises(RepeatedCallError, match="'status' has given the same result 3 times"):
            turn.check_repeat("status", {"full": True, "id": 1}, limits)


def test_a_status_may_be_asked_for_again_as_long_as_its_answers_differ():
    limits, turn = CallLimits(), TurnCounter()
    for percent in range(40):
        turn.check_repeat(*STATUS, limits)
        turn.note_results([gave(STATUS, f"{percent} %")])

    repeat(limits, STATUS, STATUS, STATUS, turn=turn)  # the third is the last: after 39 % all were "pending"
    with pytest.raises(RepeatedCallError):
        repeat(limits, STATUS, turn=turn)


def test_a_failure_with_the_text_of_a_success_is_another_result():
    limits, turn = CallLimits(repeats=1), TurnCounter()
    turn.note_results([gave(STATUS, "done")])
    turn.note_results([gave(STATUS, "done", is_error=True)])
    turn.note_results([gave(STATUS, "done")])
    with pytest.raises(RepeatedCallError):
        turn.check_repeat(*STATUS, limits)


def test_identical_calls_of_one_reply_count_as_one():
    limits, turn = CallLimits(), TurnCounter()
    for _ in range(2):
        turn.note_results([gave(STATUS)] * 10)

    repeat(limits, STATUS, turn=turn)
    with pytest.raises(RepeatedCallError):
        turn.check_repeat(*STATUS, limits)


def test_no_repeats_at_all_refuses_the_first_call():
    with pytest.raises(RepeatedCallError):
        TurnCounter().check_repeat(*STATUS, CallLimits(repeats=0))


def test_other_arguments_or_another_tool_in_between_make_a_call_new():
    status, other, build = ("status", {"id": 1}), ("status", {"id": 2}), ("build", {})

    repeat(CallLimits(repeats=1), status, other, status, build, status)


def test_repeats_can_be_allowed_for_one_tool_or_for_all():
    poll = ("poll", {"id": 1})

    repeat(CallLimits(repeats=None), *[poll] * 10)
    repeat(CallLimits(excluded=frozenset({"poll"})), *[poll] * 10)
    repeat(CallLimits(repeats_overrides={"poll": None}), *[poll] * 10)
    with pytest.raises(RepeatedCallError):
        repeat(CallLimits(repeats_overrides={"poll": 5}), *[poll] * 6)
    with pytest.raises(RepeatedCallError):
        repeat(CallLimits(repeats_overrides={"poll": None}), *[STATUS] * 4)


def test_lifting_repeats_of_a_tool_lifts_no_other_limit_of_it():
    limits = CallLimits(per_tool=2, repeats_overrides={"poll": None})
    turn = count(limits, "poll", "poll")
    with pytest.raises(CallLimitError):
        turn.count("poll", limits)


def test_an_excluded_tool_does_not_stand_between_two_calls():
    limits = CallLimits(excluded=frozenset({"poll"}))
    with pytest.raises(RepeatedCallError):
        repeat(limits, *[STATUS, ("poll", {})] * 4)


def test_what_to_do_at_a_limit_is_one_of_two():
    with pytest.raises(BadSettingError, match="on_breach is 'stop'; use one of error, raise"):
        CallLimits(on_breach="stop")
