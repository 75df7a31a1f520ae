"""What class a tool is of, by its annotations: as rules mean it, and as a person is to be asked before it runs."""

import pytest

from toolsearch.tools.definition import SafetyClass, safety_of, worst_safety_of

READ, WRITE, DESTRUCTIVE = SafetyClass


@pytest.mark.parametrize(
    ("annotations", "in_rules", "at_worst"),
    [
        ({}, WRITE, DESTRUCTIVE),
        ({"title": "Dig", "idempotentHint": True}, WRITE, DESTRUCTIVE),
        ({"readOnlyHint": True}, READ, READ),
        ({"readOnlyHint": True, "destructiveHint": False}, READ, READ),
        ({"readOnlyHint": True, "destructiveHint": True}, READ, DESTRUCTIVE),  # says both, and is not believed
        ({"readOnlyHint": False}, WRITE, DESTRUCTIVE),
        ({"readOnlyHint": False, "destructiveHint": False}, WRITE, WRITE),
        ({"destructiveHint": False}, WRITE, WRITE),
        ({"destructiveHint": True}, DESTRUCTIVE, DESTRUCTIVE),
        ({"readOnlyHint": None, "destructiveHint": None}, WRITE, DESTRUCTIVE),
    ],
)
def test_a_silent_tool_writes_in_rules_and_may_destroy_when_it_is_called(annotations, in_rules, at_worst):
    assert (safety_of(annotations), worst_safety_of(annotations)) == (in_rules, at_worst)


@pytest.mark.parametrize("unreadable", ["true", "false", 0, 1, 1.0, [], {}])
def test_a_hint_that_is_no_boolean_is_taken_for_the_worse(unreadable):
    assert safety_of({"destructiveHint": unreadable}) is DESTRUCTIVE
    assert worst_safety_of({"destructiveHint": unreadable}) is DESTRUCTIVE
    assert worst_safety_of({"readOnlyHint": True, "destructiveHint": unreadable}) is DESTRUCTIVE
    assert safety_of({"readOnlyHint": unreadable}) is WRITE
    assert worst_safety_of({"readOnlyHint": unreadable}) is DESTRUCTIVE


def test_a_class_covers_itself_and_what_is_more_harmless():
    assert [[each for each in SafetyClass if allowed.covers(each)] for allowed in SafetyClass] == [
        [READ],
        [READ, WRITE],
        [READ, WRITE, DESTRUCTIVE],
    ]
