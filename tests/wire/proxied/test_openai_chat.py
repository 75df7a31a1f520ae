"""Chat Completions through a proxy, read by the official SDK."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIError, AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from tests.wire.properties.contract import quick
from tests.wire.proxied.scripts import (
    HELD,
    HISTORY,
    Said,
    answer_to_search,
    by_call_tool,
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
from toolsearch.wire.openai_chat import proxied
from toolsearch.wire.proxied import Found, ProxiedWire

WIRE: ProxiedWire = proxied
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
DONE = event("[DONE]")


def usage(prompt: int, output: int, cached: int) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": 1}}
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **details}


def chunk(delta: dict[str, Any], finish: str | None = None, number: int = 1, **more: Any) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event({**_head(number), "object": "chat.completion.chunk", "choices": [choice], **more})


def _head(number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "created": 1_700_000_000 + number, "model": f"gpt-5-{number}"}


def entry(call: ToolCall, **more: Any) -> dict[str, Any]:
    return {**more, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def streamed(said: Said, number: int = 1) -> list[Event]:
    """The events of a round as OpenAI sends them."""
    events = [chunk({"role": "assistant", "content": ""}, number=number)]
    events += [chunk({"reasoning_content": said.thought}, number=number)] if said.thought else []
    events += [chunk({"content": part}, number=number) for part in said.text]
    for index, call in enumerate(said.calls):
        first = entry(ToolCall(call.id, call.name, ""), index=index)
        events.append(chunk({"tool_calls": [first]}, number=number))
        for part in (str(call.arguments)[:9], str(call.arguments)[9:]):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}, number=number))
    events.append(chunk({}, said.finish, number))
    if said.usage:
        events.append(event({**_head(number), "object": "chat.completion.chunk", "choices": [], "usage": said.usage}))
    return [*events, DONE]


@st.composite
def streams(draw: st.DrawFn, rounds: Sequence[Said]) -> list[list[Event]]:
    """The events of *rounds* as one of many endpoints sends them."""
    return [_odd_stream(draw, said, number) for number, said in enumerate(rounds, 1)]


def _odd_stream(draw: st.DrawFn, said: Said, number: int) -> list[Event]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": draw(st.sampled_from(["", None]))}]
    deltas += [{"reasoning_content": part} for part in pieces(draw, said.thought)]
    deltas += [{"content": part} for part in pieces(draw, said.text)]
    # The SDK cannot read calls without an index, or whose names are repeated, so only the proxy gets them.
    odd = ["without index", "names repeated"] if all(call.name in HELD for call in said.calls) else []
    style = draw(st.sampled_from(["pieces", "whole", *odd]))
    entries = [entry(call, index=index) for index, call in enumerate(said.calls)]
    if style == "without index" and entries:
        deltas.append({"tool_calls": [{**each, "index": None} for each in entries]})
    elif style == "whole":
        deltas += [{"tool_calls": [each]} for each in entries]
    else:
        for index, call in enumerate(said.calls):
            for place, part in enumerate(pieces(draw, str(call.arguments))):
                named = {"name": call.name} if style == "names repeated" or not place else {}
                with_id = {"id": call.id, "type": "function"} if named else {}
                deltas.append({"tool_calls": [{"index": index, **with_id, "function": {**named, "arguments": part}}]})
    is_one = draw(st.booleans())
    last = deltas.pop() if is_one else {}
    return [*(chunk(delta, number=number) for delta in deltas), chunk(last, said.finish, number), DONE]


def completion(said: Said, number: int = 1) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    message |= {"reasoning_content": said.thought} if said.thought else {}
    message |= {"tool_calls": [entry(call) for call in said.calls]} if said.calls else {}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}
    return {**_head(number), "object": "chat.completion", "choices": [choice], "usage": said.usage or usage(1, 1, 0)}


def read_stream(events: Sequence[Event]) -> ChatCompletion:
    """The whole reply, as the SDK makes it from a stream."""
    with sdk(written(events)) as client:
        state = ChatCompletionStreamState()
        for piece in client.chat.completions.create(model="gpt-5", messages=HI, stream=True):
            state.handle_chunk(piece)
        return state.current_completion_snapshot


def history(reply: ChatCompletion) -> list[dict[str, Any]]:
    """What a client sends next: the reply, and the results of its calls."""
    message = reply.choices[0].message.model_dump(exclude_none=True)
    message.pop("refusal", None)
    for call in message.get("tool_calls", ()):
        call.get("function", {}).pop("parsed_arguments", None)
        call.pop("index", None)
    return [
        message,
        *({"role": "tool", "tool_call_id": call["id"], "content": "Done."} for call in message.get("tool_calls", ())),
        {"role": "user", "content": "And now?"},
    ]


def conversation(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The restored conversation, without places of searches and empty fields."""
    parts = WIRE.restored(entries, HISTORY)
    whole = [entries[part] if isinstance(part, int) else part for part in parts if not isinstance(part, Found)]
    return [{key: value for key, value in entry.items() if value} for entry in whole]


def seen_by_the_model(rounds: Sequence[Said]) -> list[dict[str, Any]]:
    """The conversation that goes on after the *rounds*, the last of which has calls for the client."""
    seen: list[dict[str, Any]] = []
    for said in rounds:
        calls = said.calls
        message: dict[str, Any] = {"role": "assistant", "tool_calls": [entry(call) for call in calls]}
        message |= {"content": said.text} if said.text else {}
        message |= {"reasoning_content": said.thought} if said.thought else {}
        own, clients = [call for call in calls if is_own(call)], [call for call in calls if not is_own(call)]
        seen.append(message)
        seen += [{"role": "tool", "tool_call_id": call.id, "content": result_of(call).text} for call in own]
        seen += [{"role": "tool", "tool_call_id": call.id, "content": "Done."} for call in clients]
    return [*seen, {"role": "user", "content": "And now?"}]


@quick
@given(st.data(), conversations())
def test_the_history_of_a_client_is_restored_to_the_conversation_of_the_model(
    data: st.DataObject, rounds: list[Said]
) -> None:
    events, _, asked = relay(WIRE, data.draw(streams(rounds)))
    reply = read_stream(events)

    if rounds[-1].calls:
        expected = seen_by_the_model(rounds)
        assert conversation(history(reply)) == expected
        within = [{k: v for k, v in each.items() if v} for entries in asked for each in entries]
        whole = within if not any(map(is_own, rounds[-1].calls)) else within[: -len(asked[-1])] if asked else []
        assert expected[: len(whole)] == whole
    else:
        texts = [said.text for said in rounds if said.text]
        assert (reply.choices[0].message.content or "") == "\n\n".join(texts)
        assert WIRE.restored(history(reply), HISTORY) == [0, 1]


@quick
@given(conversations())
def test_a_reply_is_the_same_streamed_or_whole(rounds: list[Said]) -> None:
    events, streamed_reply, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    body, reply = relay_whole(WIRE, [completion(said, number) for number, said in enumerate(rounds, 1)])

    by_stream, whole = read_stream(events), ChatCompletion.model_validate(body, strict=True)
    assert conversation(history(whole)) == conversation(history(by_stream))
    assert (whole.id, whole.created, whole.model) == (by_stream.id, by_stream.created, by_stream.model)
    assert whole.choices[0].finish_reason == by_stream.choices[0].finish_reason
    assert reply.is_changed == streamed_reply.is_changed


@quick
@given(st.data(), conversations())
def test_a_reply_in_which_nothing_is_held_keeps_its_bytes(data: st.DataObject, rounds: list[Said]) -> None:
    sent = data.draw(streams(rounds))[0]
    events, reply, _ = relay(WIRE, [sent], held=())

    assert written(events) == written(sent)
    assert not reply.is_changed
    whole = completion(rounds[0])
    assert relay_whole(WIRE, [whole], held=())[0] is whole


def test_hidden_rounds_are_one_reply_to_the_client() -> None:
    rounds = [
        Said("Let me look.", calls=(search("c1"),), usage=usage(10, 5, 2)),
        Said("Rain?", calls=(by_call_tool("c2"), by_call_tool("c3")), usage=usage(20, 6, 8)),
    ]
    events, _, _ = relay(WIRE, [streamed(said, number) for number, said in enumerate(rounds, 1)])
    chunks = [json.loads(each.data) for each in events[:-1]]

    assert events[-1].data == "[DONE]"
    assert {(each["id"], each["created"], each["model"]) for each in chunks} == {
        ("chatcmpl-1", 1_700_000_001, "gpt-5-1")
    }
    deltas = [choice["delta"] for each in chunks for choice in each["choices"]]
    assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant"]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look.\n\nRain?"
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [(call["index"], call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        (0, "weather", '{"city":"Oslo"}'),
        (1, "weather", '{"city":"Oslo"}'),
    ]
    assert [choice["finish_reason"] for each in chunks for choice in each["choices"] if choice["finish_reason"]] == [
        "tool_calls"
    ]
    assert [each["usage"] for each in chunks if each.get("usage")] == [
        {
            "prompt_tokens": 30,
            "completion_tokens": 11,
            "total_tokens": 41,
            "prompt_tokens_details": {"cached_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
    ]


def test_no_usage_is_told_if_the_model_told_none() -> None:
    events, _, _ = relay(WIRE, [streamed(Said(calls=(search("c1"),))), streamed(Said("Rain.", finish="stop"))])

    assert not any("usage" in each.data for each in events)


def test_a_running_total_counts_once_per_round() -> None:
    totals = [chunk({"content": "a"}, usage=usage(10, number, 0)) for number in (1, 2)]
    rounds = [[*totals, *streamed(Said(calls=(search("c1"),)))], [*totals, chunk({}, "stop"), DONE]]
    events, _, _ = relay(WIRE, rounds)

    assert [json.loads(each.data)["usage"]["completion_tokens"] for each in events if '"usage":{' in each.data][
        -2:
    ] == [3, 4]


def test_all_up_to_the_first_call_is_passed_on_at_once_and_the_rest_at_the_end() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    sent = streamed(Said("Ah", "Hm", calls=(kept("c1"),)))
    passed_on = [reply.add_event(each) for each in sent]
    assert passed_on[:4] == [[each] for each in sent[:4]]
    assert not any(passed_on[4:])
    assert reply.end() == sent[4:]


def test_comments_pass_at_any_time() -> None:
    ping = Event("", "", b": ping\n\n")
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    assert [reply.add_event(sent) for sent in (ping, chunk({}, "stop"), ping)] == [[ping], [], [ping]]


def test_a_search_beside_a_call_of_the_client_is_carried_at_its_place() -> None:
    said = Said(calls=(search("c1"), by_call_tool("c2"), search("c3", "snow")))
    events, _, _ = relay(WIRE, [streamed(said)])
    sent = history(read_stream(events))

    assert [call["function"]["name"] for call in sent[0]["tool_calls"]] == ["weather"]
    assert conversation(sent) == seen_by_the_model([said])
    parts = WIRE.restored(sent, HISTORY)
    assert parts[1:3] == [
        {"role": "tool", "tool_call_id": "c1", "content": answer_to_search(["rain"])},
        {"role": "tool", "tool_call_id": "c3", "content": answer_to_search(["snow"])},
    ]
    assert parts[4:] == [Found(("rain",)), Found(("snow",)), 2]


def test_a_search_after_the_calls_of_the_client_is_carried() -> None:
    said = Said(calls=(kept("c1"), search("c2")))
    events, _, _ = relay(WIRE, [streamed(said)])

    assert conversation(history(read_stream(events))) == seen_by_the_model([said])


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_calls_of_a_reply_that_was_cut_off_are_marked_and_not_shown(finish: str) -> None:
    said = Said("So", calls=(search("c1"), ToolCall("c2", CALL_TOOL, '{"name":"wea')), finish=finish)
    events, reply, _ = relay(WIRE, [streamed(said)])

    assert [call.unfinished for call in reply.own_calls] == [finish, finish]
    read = read_stream(events).choices[0]
    assert (read.finish_reason, read.message.content, read.message.tool_calls) == (finish, "So", None)


def test_a_reply_that_ends_with_hidden_calls_has_stopped() -> None:
    """Such as after too many searches: a client must not wait for calls that it never gets."""
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    events = [out for sent in streamed(Said("So", calls=(search("c1"),))) for out in reply.add_event(sent)]

    assert read_stream([*events, *reply.end()]).choices[0].finish_reason == "stop"


def test_signatures_of_calls_and_numbered_thoughts_of_each_round_come_back() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "abc"}}}

    def thought(text: str, number: int) -> Event:
        details = [{"type": "reasoning.text", "text": text, "signature": "s", "index": 0}]
        return chunk({"reasoning_details": details}, number=number)

    first = [
        thought("one", 1),
        chunk({"tool_calls": [entry(search("c1"), index=0, **signed)]}),
        chunk({}, "tool_calls"),
    ]
    second = [
        thought("two", 2),
        chunk({"tool_calls": [entry(by_call_tool("c2"), index=0, **signed)]}),
        chunk({}, "stop"),
    ]
    events, _, asked = relay(WIRE, [first, second])
    restored = conversation(history(read_stream(events)))

    assert [each["reasoning_details"][0]["text"] for each in (restored[0], restored[2])] == ["one", "two"]
    assert restored[:2] == [{k: v for k, v in each.items() if v} for each in asked[0]]
    assert restored[2]["tool_calls"] == [entry(by_call_tool("c2"), **signed)]


def test_a_legacy_function_call_passes() -> None:
    sent = [chunk({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}), chunk({}, "function_call")]
    events, reply, _ = relay(WIRE, [sent])

    assert written(events) == written(sent)
    assert reply.has_client_calls


def test_a_broken_off_stream_ends_with_an_error() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    events = [*reply.add_event(chunk({"content": "Hm"})), *reply.fail("the model broke off")]

    assert not reply.is_whole
    with pytest.raises(APIError, match="the model broke off"):
        read_stream(events)
    assert events[-1].data == "[DONE]"


def test_an_error_of_the_model_passes_and_is_the_only_one() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    error = event({"error": {"message": "overloaded"}})

    assert reply.add_event(error) == [error]
    assert reply.fail("broke off") == []


@pytest.mark.parametrize("junk", ["{", "3", '{"choices": 3}', '{"choices": [3, {"delta": 4}, null]}', "[" * 9_999])
def test_junk_passes_as_it_came(junk: str) -> None:
    sent = event(junk)
    assert WIRE.open_reply(HELD, to_client, HISTORY).add_event(sent) == [sent]


def test_a_piece_that_ends_within_a_surrogate_pair_can_be_written() -> None:
    half = Event("", '{"choices": [{"delta": {"content": "\\ud83d"}}]}')
    later = WIRE.open_reply(HELD, to_client, HISTORY)
    for sent in streamed(Said("A", calls=(search("c1"),))):
        later.add_event(sent)
    later.end_round([result_of(search("c1"))])

    assert b"\\ud83d" in written(later.add_event(half))


def test_the_async_sdk_reads_the_stream() -> None:
    events, _, _ = relay(WIRE, [streamed(Said(calls=(search("c1"),))), streamed(Said("Rain.", finish="stop"), 2)])
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=written(events))

    async def read() -> str:
        transport = httpx2.MockTransport(lambda _: answer)
        http_client = httpx2.AsyncClient(transport=transport)
        client = AsyncOpenAI(api_key="k", base_url="http://proxy/v1", http_client=http_client)
        async with client, client.chat.completions.stream(model="gpt-5", messages=HI) as stream:
            return (await stream.get_final_completion()).choices[0].message.content or ""

    assert asyncio.run(read()) == "Rain."


@pytest.mark.parametrize("odd", [None, 3, "x", {}, {"tool_calls": 3}, {"tool_calls": [3, None, {"id": 4}]}])
def test_odd_entries_stay_as_they_are(odd: Any) -> None:
    assert WIRE.restored([odd], HISTORY) == [0]


def test_the_search_tool_called_by_the_client_name_is_not_written_anew() -> None:
    sent = [{"role": "assistant", "tool_calls": [entry(ToolCall("1", TOOL_NAME, "{}"))]}]
    assert WIRE.restored(sent, HISTORY) == [0]


def test_an_error_of_the_proxy_has_the_shape_of_the_api() -> None:
    assert WIRE.error_body("too large", "too_large", 413) == {
        "error": {"message": "too large", "type": "invalid_request_error", "param": None, "code": "too_large"}
    }


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
def test_a_number_that_json_cannot_hold_is_not_written(number: str) -> None:
    told = Said("a", usage={**usage(1, 2, 3), "cost": 0.5})
    sent = streamed(replace(told, calls=(search("c1"),)), 1)
    odd = [Event(each.name, each.data.replace("0.5", number)) for each in streamed(replace(told, finish="stop"), 2)]
    events, _, _ = relay(WIRE, [sent, odd])

    told: list[Any] = [json.loads(each.data).get("usage") for each in events if each.data != DONE.data]
    assert [each["cost"] for each in told if each][-1] == 0.5
    assert not any(word in each.data for each in events for word in ("Infinity", "NaN"))
