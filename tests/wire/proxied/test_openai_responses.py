"""Responses through a proxy, read by the official SDK."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
)

from tests.wire.properties.contract import quick
from tests.wire.proxied.scripts import (
    HELD,
    HISTORY,
    OPERATORS,
    Said,
    answer_to_search,
    by_call_tool,
    carriers_in,
    conversations,
    event,
    is_own,
    kept,
    pieces,
    relay,
    relay_whole,
    result_of,
    sdk,
    search,
    to_client,
    written,
)
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.wire.events import Event
from toolsearch.wire.openai_responses import proxied
from toolsearch.wire.proxied import Found, ProxiedWire

WIRE: ProxiedWire = proxied
STATUS = {"stop": "completed", "tool_calls": "completed"}


def usage(prompt: int, output: int, cached: int) -> dict[str, Any]:
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": prompt + output,
    }


def response(number: int, items: Sequence[dict[str, Any]], status: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000 + number,
        "model": "gpt-5",
        "status": status,
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        **more,
    }


def item_of(call: ToolCall, status: str = "completed") -> dict[str, Any]:
    call_item = {"id": f"fc_{call.id}", "type": "function_call", "status": status}
    return {**call_item, "call_id": call.id, "name": call.name, "arguments": call.arguments}


def items_of(said: Said, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.thought:
        items.append({"id": f"rs_{number}", "type": "reasoning", "summary": [], "encrypted_content": said.thought})
    if said.text:
        content: list[dict[str, Any]] = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}]
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    return [*items, *map(item_of, said.calls)]


def streamed(said: Said, number: int = 1, cuts: Sequence[str] = ()) -> list[Event]:
    """The events of a round. *cuts* are the pieces of each text."""
    events: list[dict[str, Any]] = []

    def add(kind: str, **data: Any) -> None:
        events.append({"type": f"response.{kind}", "sequence_number": len(events), **data})

    items = items_of(said, number)
    add("created", response=response(number, [], "in_progress"))
    add("in_progress", response=response(number, [], "in_progress"))
    for index, item in enumerate(items):
        of_item = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = item["content"][0]
            add("output_item.added", output_index=index, item={**item, "content": [], "status": "in_progress"})
            add("content_part.added", **of_item, content_index=0, part={**part, "text": ""})
            for piece in cuts or said.text:
                add("output_text.delta", **of_item, content_index=0, delta=piece, logprobs=[])
            add("output_text.done", **of_item, content_index=0, text=said.text, logprobs=[])
            add("content_part.done", **of_item, content_index=0, part=part)
        elif item["type"] == "function_call":
            add("output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"})
            for piece in (item["arguments"][:9], item["arguments"][9:]):
                add("function_call_arguments.delta", **of_item, delta=piece)
            add("function_call_arguments.done", **of_item, name=item["name"], arguments=item["arguments"])
        else:
            add("output_item.added", output_index=index, item={**item, "encrypted_content": None})
        add("output_item.done", output_index=index, item=item)
    status = STATUS.get(said.finish, said.finish)
    add(status, response=response(number, items, status, usage=said.usage or usage(1, 1, 0)))
    return [event(data, data["type"]) for data in events]


def whole(said: Said, number: int = 1) -> dict[str, Any]:
    status = STATUS.get(said.finish, said.finish)
    return response(number, items_of(said, number), status, usage=said.usage or usage(1, 1, 0))


@st.composite
def streams(draw: st.DrawFn, rounds: Sequence[Said]) -> list[list[Event]]:
    return [streamed(said, number, pieces(draw, said.text)) for number, said in enumerate(rounds, 1)]


def read_stream(events: Sequence[Event]) -> Response:
    """The whole reply, as the SDK makes it from a stream; its items must be those that the stream gave one by one."""
    numbers = [json.loads(each.data)["sequence_number"] for each in events if each.data]
    assert numbers == list(range(len(numbers)))
    with sdk(written(events)) as client:
        sent = list(client.responses.create(model="gpt-5", input="Hi", stream=True))
    assert [each.type for each in sent if each.type in ("response.created", "response.in_progress")] == [
        "response.created",
        "response.in_progress",
    ]
    last = sent[-1]
    assert isinstance(last, ResponseCompletedEvent | ResponseIncompleteEvent | ResponseFailedEvent)
    done = {each.output_index: each.item for each in sent if isinstance(each, ResponseOutputItemDoneEvent)}
    added = [each.output_index for each in sent if isinstance(each, ResponseOutputItemAddedEvent)]
    assert added == sorted(done) == list(range(len(last.response.output)))
    assert [done[index] for index in added] == last.response.output
    if isinstance(last, ResponseCompletedEvent):
        with sdk(written(events)) as client, client.responses.stream(model="gpt-5", input="Hi") as stream:
            whole_items = [item.type for item in stream.get_final_response().output]
        assert whole_items == [item.type for item in last.response.output]
    return last.response


def history(reply: Response) -> list[Any]:
    """What a client sends next: the items, and the results of its calls."""
    items = [item.model_dump(exclude_unset=True, mode="json") for item in reply.output]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": call_id, "output": "Done."} for call_id in calls]
    return [*items, *outputs, {"role": "user", "content": "And now?"}]


def conversation(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = WIRE.restored(entries, HISTORY)
    return [entries[part] if isinstance(part, int) else part for part in parts if not isinstance(part, Found)]


def seen_by_the_model(rounds: Sequence[Said]) -> list[dict[str, Any]]:
    """The conversation that goes on after the *rounds*."""
    seen: list[dict[str, Any]] = []
    for number, said in enumerate(rounds, 1):
        seen += items_of(said, number)
        own, clients = [call for call in said.calls if is_own(call)], [call for call in said.calls if not is_own(call)]
        seen += [_output(call, result_of(call).text) for call in own]
        seen += [_output(call, "Done.") for call in clients]
    return [*seen, {"role": "user", "content": "And now?"}]


def _output(call: ToolCall, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.id, "output": text}


@quick
@given(st.data(), conversations())
def test_the_history_of_a_client_is_restored_to_the_conversation_of_the_model(
    data: st.DataObject, rounds: list[Said]
) -> None:
    events, _, asked = relay(WIRE, data.draw(streams(rounds)))
    sent = history(read_stream(events))

    if not rounds[-1].calls and not rounds[-1].text:
        return  # nothing can carry
    expected = seen_by_the_model(rounds)
    assert conversation(sent) == expected
    is_last_shown = any(map(is_own, rounds[-1].calls))
    within = [each for entries in (asked[:-1] if is_last_shown else asked) for each in entries]
    assert expected[: len(within)] == within


@quick
@given(conversations())
def test_a_reply_is_the_same_streamed_or_whole(rounds: list[Said]) -> None:
    """But for its id: a stream has told the first one before the last is known, by which the API continues it."""
    events, streamed_reply, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    body, reply = relay_whole(WIRE, [whole(said, number) for number, said in enumerate(rounds, 1)])

    by_stream = read_stream(events)
    assert {**body, "id": "resp_1"} == json.loads(events[-1].data)["response"]
    assert by_stream.id == "resp_1"
    assert reply.stored is not None
    assert streamed_reply.stored == replace(reply.stored, given_id="resp_1")
    assert Response.model_validate(body, strict=True).id == reply.stored.id == reply.stored.given_id
    assert reply.is_changed == streamed_reply.is_changed


@quick
@given(st.data(), conversations())
def test_a_reply_in_which_nothing_is_held_keeps_its_bytes(data: st.DataObject, rounds: list[Said]) -> None:
    sent = data.draw(streams(rounds))[0]
    events, reply, _ = relay(WIRE, [sent], held=())

    assert written(events) == written(sent)
    assert not reply.is_changed
    body, reply = relay_whole(WIRE, [whole(rounds[0])], held=())
    assert body == whole(rounds[0])
    assert not reply.is_changed


def without_ids(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key != "id"}]


def with_null_content(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"content": None, **item} if item.get("type") == "reasoning" else item]


def without_reasoning(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [] if item.get("type") == "reasoning" else [item]


def as_references(item: dict[str, Any]) -> list[dict[str, Any]]:
    """As sent for items that the API has stored. The call is the model's own there, so only its output tells of us."""
    return [{"type": "item_reference", "id": item["id"]} if "id" in item else item]


@quick
@given(conversations(), st.sampled_from([without_ids, with_null_content, without_reasoning, as_references]))
def test_a_client_that_changes_items_leaves_a_history_that_is_valid(
    rounds: list[Said], changed: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    """Every call of the model has one output, which comes after it and before the next round."""
    events, _, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    sent = [each for item in history(read_stream(events)) for each in changed(item)]

    restored = conversation(sent)

    assert carriers_in(restored) == []
    if rounds[-1].calls:
        ids = [called(each) for each in restored if called(each)]
        for said in rounds:
            here, ids = ids[: 2 * len(said.calls)], ids[2 * len(said.calls) :]
            expected = sorted(call.id for call in said.calls)
            assert (sorted(here[: len(expected)]), sorted(here[len(expected) :])) == (expected, expected)
        assert not ids


def called(item: dict[str, Any]) -> str:
    """The id of the call that an item is about, even a reference; "" if it is about none."""
    call_id = str(item.get("call_id") or str(item.get("id")).removeprefix("fc_"))
    return call_id if call_id.startswith("c") else ""


def test_hidden_rounds_are_one_response_to_the_client() -> None:
    rounds = [
        Said("Let me look.", "t1", (search("c1"),), usage=usage(10, 5, 2)),
        Said("Rain?", "t2", (by_call_tool("c2"), by_call_tool("c3", OPERATORS)), usage=usage(20, 6, 8)),
    ]
    events, _, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    read = read_stream(events)

    assert [item.type for item in read.output] == ["reasoning", "message", "reasoning", "message", "function_call"]
    call = read.output[4]
    assert call.type == "function_call"
    assert (call.name, call.arguments, call.id) == ("weather", '{"city":"Oslo"}', "fc_c2")
    assert read.id == "resp_1"
    assert read.usage is not None
    assert read.usage.to_dict() == {
        "input_tokens": 30,
        "output_tokens": 11,
        "total_tokens": 41,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 2},
    }


def test_a_search_beside_a_call_of_the_client_is_carried_with_what_it_found() -> None:
    body, _ = relay_whole(WIRE, [whole(Said(calls=(search("c1"), kept("c2"))))])

    assert [item["name"] for item in body["output"]] == ["bash"]
    assert WIRE.restored(history(Response.model_validate(body)), HISTORY) == [
        item_of(search("c1")),
        item_of(kept("c2")),
        _output(search("c1"), answer_to_search(["rain"])),
        _output(kept("c2"), "Done."),
        Found(("rain",)),
        2,
    ]


def test_a_reply_that_ends_in_text_is_carried_by_the_id_of_its_message() -> None:
    rounds = [Said("", "Hm", (search("c1"),)), Said("No.", "Well", finish="stop")]
    events, _, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    read = read_stream(events)

    ids = {json.loads(each.data)["item_id"] for each in events if "item_id" in each.data}
    assert ids == {read.output[-1].id}
    assert conversation(history(read)) == seen_by_the_model(rounds)


def test_reasoning_that_nothing_follows_is_left_out() -> None:
    """The API refuses it. A call that the client was not shown came after it."""
    body, _ = relay_whole(WIRE, [whole(Said("", "Hm", (search("c1"),)))])

    assert WIRE.restored(history(Response.model_validate(body)), HISTORY) == [1]


def test_arguments_come_back_word_for_word() -> None:
    odd = replace(search("c1"), arguments='{ "query": "r\\u00e9"}')
    body, _ = relay_whole(WIRE, [whole(Said(calls=(odd, kept("c2"))))])

    assert conversation(body["output"])[0]["arguments"] == odd.arguments


def test_all_up_to_the_first_call_is_passed_on_at_once_and_the_rest_at_the_end() -> None:
    sent = streamed(Said("Ah", "Hm", (kept("c1"),)))
    begin = next(place for place, each in enumerate(sent) if "function_call" in each.data)
    reply = WIRE.open_reply(HELD, to_client, HISTORY)

    assert [reply.add_event(each) for each in sent[:begin]] == [[each] for each in sent[:begin]]
    assert not any(reply.add_event(each) for each in sent[begin:])
    assert reply.end() == sent[begin:]


def test_calls_of_a_response_that_was_cut_off_are_marked_and_not_shown() -> None:
    events = streamed(Said("So", "", (search("c1"), ToolCall("c2", CALL_TOOL, '{"name":"wea')), "incomplete"))
    out, reply, _ = relay(WIRE, [events])

    assert [call.unfinished for call in reply.own_calls] == ["max_output_tokens"] * 2
    read = read_stream(out)
    assert (read.status, [item.type for item in read.output]) == ("incomplete", ["message"])


def test_a_held_call_without_an_end_is_not_run() -> None:
    events = streamed(Said(calls=(by_call_tool("c1"),), finish="incomplete"))
    last = json.loads(events[-1].data)
    last["response"]["output"][0] |= {"status": "incomplete", "arguments": '{"na'}
    _, reply, _ = relay(WIRE, [[*events[:4], event(last, last["type"])]])

    assert [call.unfinished for call in reply.own_calls] == ["incomplete"]
    assert not reply.has_client_calls


def test_items_that_only_the_last_event_holds_are_read_from_there() -> None:
    """Some endpoints stream texts alone."""
    events = streamed(Said("", "", (search("c1"), kept("c2"))))
    _, reply, asked = relay(WIRE, [[*events[:2], events[-1]]])

    assert [call.name for call in reply.own_calls] == []  # the round has been shown
    assert [entry.get("name") for entry in asked[0]] == [TOOL_NAME, "bash", None]


def test_arguments_that_came_in_pieces_alone_are_joined() -> None:
    events = [json.loads(each.data) for each in streamed(Said(calls=(search("c1"),)))]
    for data in events:
        if data["type"] == "response.output_item.done":
            data["item"]["arguments"] = ""
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    for data in events:
        reply.add_event(event(data, data["type"]))

    assert reply.own_calls == [search("c1")]


@pytest.mark.parametrize("kind", ["custom_tool_call", "computer_call", "mcp_approval_request", "tool_search_call"])
def test_items_that_wait_for_the_client_end_the_reply(kind: str) -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    reply.add_whole(response(1, [{"type": kind, "id": "x", "execution": "client"}], "completed"))

    assert reply.has_client_calls


def test_a_broken_off_stream_ends_as_failed_with_what_has_come() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    events = [out for sent in streamed(Said("So", "Hm"))[:8] for out in reply.add_event(sent)]
    last = reply.fail("the model broke off")

    assert not reply.is_whole
    with sdk(written([*events, *last])) as client:
        failed = list(client.responses.create(model="gpt-5", input="Hi", stream=True))[-1]
    assert failed.type == "response.failed"
    assert failed.sequence_number == 8
    assert failed.response.error is not None
    assert (failed.response.id, failed.response.error.message) == ("resp_1", "the model broke off")
    assert [item.type for item in failed.response.output] == ["reasoning", "message"]
    assert reply.fail("again") == []


def test_a_stream_that_never_began_ends_with_an_error() -> None:
    (error,) = WIRE.open_reply(HELD, to_client, HISTORY).fail("nothing came")
    assert (error.name, json.loads(error.data)["message"]) == ("error", "nothing came")


@pytest.mark.parametrize("junk", ["", "{", "3", '{"type": [3], "output_index": []}', "[" * 9_999])
def test_junk_passes_as_it_came(junk: str) -> None:
    sent = event(junk, "odd")
    assert WIRE.open_reply(HELD, to_client, HISTORY).add_event(sent) == [sent]


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 3, "x", {}, {"type": 3, "id": []}),
        {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "arguments": {}},
        {"type": "mcp_call", "id": "mcp_68", "name": "a", "arguments": "{}", "server_label": "other", "output": "x"},
        {"type": "function_call", "call_id": "1", "name": TOOL_NAME, "arguments": "{}"},
    ],
)
def test_odd_entries_and_calls_of_others_stay_as_they_are(odd: Any) -> None:
    assert WIRE.restored([odd, {"role": "user", "content": "a"}], HISTORY) == [0, 1]


def test_the_async_sdk_reads_the_stream() -> None:
    events, _, _ = relay(WIRE, [streamed(Said(calls=(search("c1"),))), streamed(Said("Rain.", finish="stop"), 2)])
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=written(events))

    async def read() -> str:
        http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answer))
        client = AsyncOpenAI(api_key="k", base_url="http://proxy/v1", http_client=http_client)
        async with client, client.responses.stream(model="gpt-5", input="Hi") as stream:
            return (await stream.get_final_response()).output_text

    assert asyncio.run(read()) == "Rain."
