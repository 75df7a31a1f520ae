"""The benchmark of anticipation counts what it says, and pages tell what it has stored."""

import pytest

from benchmarks import anticipation
from benchmarks.labelled import LabelledQuery, LabelledSet

LEAST = anticipation.THRESHOLDS[0]
_TEXTS = {"mail/send": "Send an email message.", "bill.pay": "Pay a bill with money.", "add": "Add two numbers."}


@pytest.fixture
def asked() -> anticipation.Asked:
    tools = [{"id": name, "description": text, "input_schema": {}} for name, text in _TEXTS.items()]
    queries = [LabelledQuery(text, frozenset([name])) for name, text in _TEXTS.items()]
    return anticipation.asked_in(LabelledSet("small", tools, queries))


def test_the_curve_has_the_shares_of_needed_tools_and_of_right_ones(asked: anticipation.Asked) -> None:
    curve = anticipation.curve(asked)

    assert (curve["asked"], curve["tools"]) == (3, 3)
    assert curve["curve"][str(LEAST)] == {"there": 1.0, "needed": 1.0}


def test_conversations_save_rounds_where_tools_can_be_shown_beforehand(asked: anticipation.Asked) -> None:
    rows = anticipation.conversations(asked)
    figures = {"requests": {"small": anticipation.curve(asked)}, "conversations": rows + anticipation.of_all(rows)}

    found = {(row["wire"], row["least"]): row for row in rows}
    assert {wire: found[wire, None]["rounds"] for wire, _ in found} == dict.fromkeys(
        ("anthropic", "openai-responses", "openai"), 3
    )
    assert [found[wire, LEAST]["rounds"] for wire in ("anthropic", "openai-responses", "openai")] == [0, 0, 2]
    assert [found[wire, LEAST]["called"] for wire in ("anthropic", "openai-responses", "openai")] == [3, 3, 1]
    saved = anticipation.tables(figures)["anticipation, thresholds"][1][0]
    assert saved[:6] == [str(LEAST), "claude-opus-5-5", "messages", "100%", "100%", "2.00 / 1.00"]
    assert float(saved[6]) < 1
