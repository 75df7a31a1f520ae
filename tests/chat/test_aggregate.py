"""What pieces of an answer come to, also where endpoints send them in their own way."""

import pytest

from tests.kit.scripted_model import calls, pieces, says
from toolsearch import ToolCall
from toolsearch.chat import AssistantMessage, ChatChunk, ToolCallDelta, Usage, aggregate
from toolsearch.errors import ChatModelError

END = ChatChunk(finish_reason="stop")


def deltas(*pieces: ToolCallDelta) -> tuple[ToolCall, ...]:
    return aggregate([*(ChatChunk(tool_calls=(piece,)) for piece in pieces), END]).message.tool_calls


def test_a_streamed_answer_is_the_same_as_a_whole_one() -> None:
    for response in [says("It is 5."), calls(("add", '{"a": 2}'), ("add", '{"a": 3}'), text="Let me see.")]:
        assert aggregate(pieces(response)) == response


def test_pieces_are_enough_where_no_whole_message_comes() -> None:
    response = calls(("add", '{"a": 2}'), ("sub", '{"b": 3}'), text="Let me see.")

    assert aggregate(pieces(response)[:-1]).message == response.message


def test_a_whole_message_counts_more_than_its_pieces() -> None:
    whole = AssistantMessage("Hello, all.")

    assert aggregate([ChatChunk(text="Hel"), ChatChunk(message=whole)]).message == whole


def test_pieces_of_parallel_calls_may_be_mixed() -> None:
    found = deltas(
        ToolCallDelta(0, "x", "first"),
        ToolCallDelta(1, "y", "second"),
        ToolCallDelta(1, arguments='{"b":'),
        ToolCallDelta(0, arguments='{"a":1}'),
        ToolCallDelta(1, arguments="2}"),
    )

    assert found == (ToolCall("x", "first", '{"a":1}'), ToolCall("y", "second", '{"b":2}'))


def test_id_and_name_may_come_late_and_may_be_repeated() -> None:
    found = deltas(ToolCallDelta(0, arguments="{"), ToolCallDelta(0, "x", "f", "}"), ToolCallDelta(0, "x", "f"))

    assert found == (ToolCall("x", "f", "{}"),)


def test_calls_without_ids_are_numbered() -> None:
    found = deltas(ToolCallDelta(0, name="f"), ToolCallDelta(1, name="g"))

    assert [call.id for call in found] == ["call_1", "call_2"]


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    found = deltas(ToolCallDelta(0, "x", "f", "{}"), ToolCallDelta(0, "y", "f", '{"a":1}'))

    assert [(call.id, call.arguments) for call in found] == [("x", "{}"), ("y", '{"a":1}')]


def test_lost_arguments_are_an_empty_object_and_empty_pieces_are_no_calls() -> None:
    assert deltas(ToolCallDelta(0, "x", "f"), ToolCallDelta(1)) == (ToolCall("x", "f", "{}"),)


def test_a_call_without_a_name_is_an_error_of_the_model() -> None:
    with pytest.raises(ChatModelError, match="without a name"):
        deltas(ToolCallDelta(0, "x", arguments="{}"))


def test_a_stream_that_is_cut_off_is_an_error_so_that_no_half_call_is_run() -> None:
    cut_off = pieces(calls(("pay", '{"amount": 100}')))[:1]

    with pytest.raises(ChatModelError, match="in the midst"):
        aggregate(cut_off)
    with pytest.raises(ChatModelError, match="in the midst"):
        aggregate([])


def test_usage_is_counted_once_where_each_piece_brings_the_count_so_far() -> None:
    chunks = [ChatChunk(text="a", usage=Usage(5, 1)), ChatChunk(text="b", usage=Usage(5, 2)), END]

    assert aggregate(chunks).usage == Usage(5, 2)


def test_calls_are_the_reason_to_finish_also_where_an_endpoint_says_stop() -> None:
    chunks = [ChatChunk(tool_calls=(ToolCallDelta(0, "x", "f", "{}"),)), END]

    assert aggregate(chunks).finish_reason == "tool_calls"
    assert aggregate([ChatChunk(text="half", finish_reason="length")]).finish_reason == "length"
