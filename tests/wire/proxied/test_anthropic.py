"""Anthropic's Messages through a proxy, with the official SDK as client and a scripted model."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias, cast

import httpx2
import pytest
from anthropic import Anthropic, APIStatusError, AsyncAnthropic, RateLimitError
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.loopback.anthropic_messages import events
from tests.kit.strict.anthropic_messages import conversation_problems
from tests.wire.proxied.scripts import carriers_in
from toolsearch.discovery.call_tools import inner_call
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.results import image_block, text_block
from toolsearch.wire.anthropic import proxied
from toolsearch.wire.carried import OwnAnswer
from toolsearch.wire.events import Event, EventReader
from toolsearch.wire.native_search import found_names
from toolsearch.wire.proxied import Found, History, ProxiedWire, Reply, Restored
from toolsearch.wire.reply_parts import arguments_text

Block: TypeAlias = dict[str, Any]
Blocks: TypeAlias = st.SearchStrategy[Block]

MODEL = "claude-opus-5"

OPERATORS = "operators_tool"  # runs at the proxy; the model may call it by its name, too
CLIENTS = "clients_tool"  # held back, called by callTool
KEPT = "kept_tool"  # in the client's list
HELD = (TOOL_NAME, CALL_TOOL, OPERATORS)
HISTORY = History({CLIENTS}, lambda names: OwnAnswer(f"Found: {', '.join(names) or 'nothing'}."))
BOUND = replace(HISTORY, binds_thinking=True)
WIRE = cast("ProxiedWire", proxied)
ASKED: Any = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}


def _no_skill(name: str) -> Tool | None:
    return None


def to_client(call: ToolCall) -> ToolCall | None:
    inner = inner_call(call, _no_skill)
    return inner if inner.name == CLIENTS else None


def result_of(call: ToolCall) -> ToolResult:
    """A search finds the tools that its first query is the text of."""
    if call.name == TOOL_NAME:
        names = str(call.parsed_arguments["queries"]).split()
        return ToolResult(call.id, TOOL_NAME, (text_block(HISTORY.answer_to_search(names).text),), {"tools": names})
    said = f"{call.name} did {arguments_text(call)}"
    content = (text_block(said), text_block(""), image_block("aGk=", "image/png"))
    return ToolResult(call.id, inner_call(call, _no_skill).name, content, is_error="x" in said)


def message(content: Sequence[Block], stop: str = "", **more: Any) -> Block:
    """A reply of the model."""
    has_calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop or ("tool_use" if has_calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def stream_of(reply: Block) -> bytes:
    return "".join(events(reply, {})).encode()


def call(name: str, asked: Block, call_id: str = "toolu_1") -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": asked}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thinking(thought: str) -> Block:
    return {"type": "thinking", "thinking": thought, "signature": f"{thought}/+=="}


@dataclass
class Exchange:
    """One reply to a client, of a model that says *rounds* one after another.

    seen     entries that have been sent to the model since the client's request
    pending  results that the model has not been sent yet
    """

    rounds: Sequence[Block]
    is_streamed: bool = True
    binds_thinking: bool = False
    seen: list[Block] = field(default_factory=list[Block])
    pending: list[Block] = field(default_factory=list[Block])
    found: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    reply: Reply = field(init=False)

    def run(self) -> list[Event]:
        self.reply = WIRE.open_reply(HELD, to_client, BOUND if self.binds_thinking else HISTORY)
        given: list[Event] = []
        for number, said in enumerate(self.rounds, 1):
            self.pending = []
            given += self._add(said)
            calls = self.reply.own_calls
            if not calls or any(each.unfinished for each in calls):
                self.seen.append({"role": "assistant", "content": sent_back(said["content"])})
                break
            results = [result_of(each) for each in calls]
            goes_on = number < len(self.rounds) and not self.reply.has_client_calls
            answer, results_entry = self.reply.next_entries(results)
            names = [name for result in results for name in found_names(result)]
            self.found += [tuple(dict.fromkeys(names))] if names else []
            given += self.reply.end_round(results)
            self.seen.append(answer)
            if not goes_on:
                self.pending = results_entry["content"]
                break
            self.seen.append(results_entry)
        return [*given, *(self.reply.end() if self.is_streamed else ())]

    def _add(self, said: Block) -> list[Event]:
        if self.is_streamed:
            given = [each for event in EventReader().add(stream_of(said)) for each in self.reply.add_event(event)]
        else:
            self.reply.add_whole(deepcopy(said))
            given = []
        assert self.reply.is_whole
        return given


def sent_back(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def streamed(*rounds: Block, binds_thinking: bool = False) -> bytes:
    return b"".join(event.written() for event in Exchange(rounds, binds_thinking=binds_thinking).run())


def whole(*rounds: Block, binds_thinking: bool = False) -> Block:
    exchange = Exchange(rounds, is_streamed=False, binds_thinking=binds_thinking)
    exchange.run()
    return exchange.reply.body()


SENT: dict[str, bytes] = {}


def answer(request: httpx2.Request) -> httpx2.Response:
    kind = "text/event-stream" if json.loads(request.content).get("stream") else "application/json"
    return httpx2.Response(int(SENT.get("status", b"200")), headers={"content-type": kind}, content=SENT["content"])


def client() -> Anthropic:
    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return Anthropic(api_key="k", base_url="http://model", max_retries=0, http_client=transport)


SDK = client()


def plain(given: Any) -> list[Block]:
    return [block.to_dict() for block in given.content]


def read_beta(stream: bytes) -> Any:
    SENT["content"] = stream
    with SDK.beta.messages.stream(**ASKED) as reading:
        return reading.get_final_message()


def read_stable(stream: bytes) -> Any:
    SENT["content"] = stream
    with SDK.messages.stream(**ASKED) as reading:
        return reading.get_final_message()


def read_raw(stream: bytes) -> Any:
    """The reply as a client of few lines reads it."""
    SENT["content"] = stream
    reading: Any = SDK.messages.create(**ASKED, stream=True)
    kinds = [event.type for event in reading]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    return read_stable(stream)


def read_async(stream: bytes) -> Any:
    async def reading() -> Any:
        transport = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        async with (
            AsyncAnthropic(api_key="k", base_url="http://model", http_client=transport) as sdk,
            sdk.beta.messages.stream(**ASKED) as given,
        ):
            return await given.get_final_message()

    SENT["content"] = stream
    return asyncio.run(reading())


READERS: list[Callable[[bytes], Any]] = [read_beta, read_stable, read_raw, read_async]
NAMES = st.lists(st.sampled_from(["alpha", "beta", "gamma"]), max_size=3, unique=True)
SAID = st.text(max_size=4)
ARGUMENTS = st.dictionaries(SAID, st.none() | st.integers() | SAID | st.lists(SAID, max_size=2), max_size=2)


def search(names: list[str]) -> Block:
    return call(TOOL_NAME, {"queries": " ".join(names)})


def by_call_tool(name: str, asked: Block) -> Block:
    return call(CALL_TOOL, {"name": name, "arguments": asked})


def redacted(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}


WEB_SEARCH: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
WEB_RESULT: Block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
OWN: Blocks = st.one_of(
    NAMES.map(search),
    st.builds(call, st.just(OPERATORS), ARGUMENTS),
    st.builds(by_call_tool, st.just(OPERATORS), ARGUMENTS),
    st.builds(call, st.just(CALL_TOOL), ARGUMENTS),  # a call that cannot be read
)
OF_KEPT: Blocks = st.builds(call, st.just(KEPT), ARGUMENTS)
OF_CLIENT: Blocks = st.builds(by_call_tool, st.just(CLIENTS), ARGUMENTS) | OF_KEPT
OTHERS: Blocks = st.one_of(
    SAID.map(text), SAID.map(thinking), SAID.map(redacted), st.just(WEB_SEARCH), st.just(WEB_RESULT)
)


def numbered(rounds: Sequence[Sequence[Block]], begin: int) -> list[Block]:
    """The rounds as messages, whose calls have ids of their own."""
    messages = [message(deepcopy(list(blocks)), id=f"msg_{begin}_{number}") for number, blocks in enumerate(rounds)]
    calls = [block for each in messages for block in each["content"] if block["type"] == "tool_use"]
    for number, block in enumerate(calls):
        block["id"] = f"toolu_{begin}_{number}-x"
    return messages


def replies(*blocks: Blocks) -> st.SearchStrategy[list[list[Block]]]:
    """Rounds of one reply: all but the last hold own calls and no other."""
    own = st.builds(with_last, st.lists(OTHERS | OWN, max_size=4), OWN)
    return st.builds(with_last, st.lists(own, max_size=3), st.lists(st.one_of(blocks)))


def with_last(items: list[Any], last: Any) -> list[Any]:
    return [*items, last]


REPLIES = replies(OTHERS, OWN, OF_CLIENT)


def user_after(content: Sequence[Block], number: int) -> Block:
    """The client's next message: the results of its calls, and a text."""
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": f"result {number}"}
        for block in content
        if block["type"] == "tool_use"
    ]
    return {"role": "user", "content": [*results, text(f"Go on {number}.")] if results else f"Go on {number}."}


def with_pending(pending: Sequence[Block], user: Block) -> Block:
    return {"role": "user", "content": [*pending, *without_carriers(blocks_of(user))]}


def without_carriers(content: Sequence[Block]) -> list[Block]:
    """The blocks with the ids that the model gave."""
    return [
        {**block, **{key: block[key].partition("_ts_")[0] for key in ("id", "tool_use_id") if key in block}}
        for block in content
    ]


def written(parts: Sequence[Restored], history: Sequence[Block]) -> list[Block]:
    return [history[part] if isinstance(part, int) else part for part in parts if not isinstance(part, Found)]


def as_read(entries: Sequence[Block]) -> list[tuple[str, Block, str]]:
    """The conversation as the API takes it: neighbours of one role are one message, and an empty answer is none. It
    refuses thinking at the end of an answer.

    The SDK has an order of its own for the keys of a block, but not for those of a call's arguments.
    """
    read: list[tuple[str, Block, str]] = []
    for each in entries:
        read += [(each["role"], block, json.dumps(block.get("input"))) for block in blocks_of(each)]
        while read and read[-1][1]["type"] in ("thinking", "redacted_thinking"):
            read.pop()
    return read


def blocks_of(entry: Block) -> list[Block]:
    said = entry["content"]
    return [text(said)] if isinstance(said, str) else said


@pytest.mark.parametrize("binds_thinking", [False, True])
@given(script=st.lists(REPLIES, max_size=3))
def test_what_a_client_sends_back_is_restored_to_what_the_model_saw(
    binds_thinking: bool, script: list[list[list[Block]]]
) -> None:
    """A reply without a call of the client is restored only if the API binds thinking to what came before, or if the
    model has thought in a round that is hidden.
    """
    history: list[Block] = [{"role": "user", "content": "Begin."}]
    seen = list(history)
    found: list[tuple[str, ...]] = []
    for number, rounds in enumerate(script):
        exchange = Exchange(numbered(rounds, number), binds_thinking=binds_thinking)
        given = sent_back(plain(read_beta(b"".join(event.written() for event in exchange.run()))))
        user = user_after(given, number)
        history += [{"role": "assistant", "content": given}, user]
        carries = any(block.get("id", "").startswith(("toolu_", "srvtoolu_toolsearch")) for block in given)
        if binds_thinking or exchange.reply.has_client_calls or carries:
            seen += [*exchange.seen, with_pending(exchange.pending, user)]
            found += exchange.found
        else:
            seen += history[-2:]

        parts = WIRE.restored(history, BOUND if binds_thinking else HISTORY)

        assert as_read(written(parts, history)) == as_read(seen)
        assert [part.names for part in parts if isinstance(part, Found)] == found


@given(rounds=REPLIES)
def test_a_streamed_reply_is_the_whole_one_in_pieces(rounds: list[list[Block]]) -> None:
    said = numbered(rounds, 0)

    given = read_beta(streamed(*said)).to_dict()

    expected = whole(*said)
    assert (given["content"], given["stop_reason"]) == (expected["content"], expected["stop_reason"])
    assert {key: given["usage"][key] for key in expected["usage"]} == expected["usage"]


def kept_by_clients(content: list[Block], kind: str) -> list[Block]:
    """What the client of a *kind* keeps of a reply."""
    shown = ("server_tool_use", "tool_search_tool_result")
    match kind:
        case "drops":
            return [block for block in content if block["type"] not in shown]
        case "drops results":
            return [block for block in content if block["type"] != shown[1]]
        case "drops calls":
            return [block for block in content if block["type"] != shown[0]]
        case "drops thinking":
            return [block for block in content if block["type"] != "thinking"]
        case "reorders keys":
            return [dict(sorted(block.items())) for block in content]
        case _:
            return list(_joined(content))


def _joined(content: Sequence[Block]) -> Iterator[Block]:
    """Neighbouring blocks of one kind as one."""
    for kind, group in groupby(content, lambda block: block["type"]):
        blocks = list(group)
        if kind in ("text", "thinking"):
            yield {key: kind if key == "type" else "".join(each[key] for each in blocks) for key in blocks[0]}
        else:
            yield from blocks


KINDS = ["drops", "drops results", "drops calls", "drops thinking", "reorders keys", "joins blocks"]


@pytest.mark.parametrize("kind", KINDS)
@given(script=st.lists(replies(st.builds(text, SAID) | SAID.map(thinking), OWN, OF_CLIENT), max_size=3))
def test_a_client_that_keeps_a_part_of_what_it_is_shown_still_sends_a_valid_history(
    kind: str, script: list[list[list[Block]]]
) -> None:
    history: list[Block] = [{"role": "user", "content": "Begin."}]
    for number, rounds in enumerate(script):
        own = [[block for block in blocks if block["type"] in ("text", "thinking", "tool_use")] for blocks in rounds]
        given = whole(*numbered(own, number), binds_thinking=True)["content"]
        content = sent_back(kept_by_clients(given, kind))
        history += [{"role": "assistant", "content": content}] if content else []
        history.append(user_after(content, number))

    request = {"messages": written(WIRE.restored(history, HISTORY), history)}

    names = [TOOL_NAME, CALL_TOOL, OPERATORS, KEPT]
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    assert list(conversation_problems(request, tools, MODEL)) == []
    assert carriers_in(request) == []


@given(content=st.lists(OTHERS | OF_KEPT), size=st.integers(1, 99))
def test_a_reply_without_held_calls_passes_with_its_bytes(content: list[Block], size: int) -> None:
    (said,) = numbered([content], 0)
    stream = b": hello\r\n\r\n" + stream_of(said) + b"event: later\ndata: [1]\n\n"
    reader, reply = EventReader(), WIRE.open_reply(HELD, to_client, HISTORY)

    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    given = [each for piece in pieces for event in reader.add(piece) for each in reply.add_event(event)]
    given += reply.end()

    assert b"".join(event.written() for event in given) == stream
    assert not reply.is_changed
    assert reply.own_calls == []


def test_a_whole_reply_without_held_calls_is_the_models_own() -> None:
    said = message([text("Hi."), call(KEPT, {})], of_later="x")
    reply = WIRE.open_reply(HELD, to_client, HISTORY)

    reply.add_whole(said)

    assert reply.body() is said
    assert reply.has_client_calls
    assert not reply.is_changed


ROUNDS = [
    message([thinking("Hm."), text("I look."), call(TOOL_NAME, {"queries": "alpha beta"}, "toolu_1")]),
    message([thinking("Two."), call(OPERATORS, {"q": 1}, "toolu_2"), call(TOOL_NAME, {"queries": ""}, "toolu_3")]),
    message([text("Now."), call(CALL_TOOL, {"name": CLIENTS, "arguments": {"n": 1}}, "toolu_4")]),
]
GIVEN: list[Block] = [
    thinking("Hm."),
    text("I look."),
    thinking("Two."),
    text("Now."),
    {"type": "tool_use", "id": "toolu_4", "name": CLIENTS, "input": {"n": 1}},
]


@pytest.mark.parametrize("read", READERS)
def test_every_way_of_the_sdk_reads_a_reply_of_three_rounds_as_one(read: Callable[[bytes], Any]) -> None:
    given = read(streamed(*ROUNDS))

    assert without_carriers(plain(given)) == GIVEN
    assert given.stop_reason == "tool_use"
    assert (given.usage.input_tokens, given.usage.output_tokens) == (30, 15)


@pytest.mark.parametrize("api", [SDK.messages, SDK.beta.messages])
def test_the_sdk_reads_a_whole_reply_of_three_rounds_as_one(api: Any) -> None:
    SENT["content"] = json.dumps(whole(*ROUNDS)).encode()

    given = api.create(**ASKED)

    assert without_carriers(plain(given)) == GIVEN
    assert given.stop_reason == "tool_use"


def test_blocks_come_strictly_one_after_another() -> None:
    given = [json.loads(event.data) for event in EventReader().add(streamed(*ROUNDS))]

    open_blocks: list[int] = []
    begun = 0
    for data in given:
        match data["type"]:
            case "content_block_start":
                assert (data["index"], open_blocks) == (begun, [])
                open_blocks, begun = [begun], begun + 1
            case "content_block_delta":
                assert open_blocks == [data["index"]]
            case "content_block_stop":
                assert open_blocks == [data["index"]]
                open_blocks = []
            case _:
                pass
    kinds = [data["type"] for data in given if not data["type"].startswith("content_block")]
    assert kinds == ["message_start", "ping", "ping", "ping", "message_delta", "message_stop"]


def test_all_up_to_the_first_call_is_given_at_once() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    said = EventReader().add(stream_of(message([text("abcdefgh"), call(KEPT, {}), text("ij")])))
    begin = next(place for place, event in enumerate(said) if KEPT in event.data)

    assert [reply.add_event(event) for event in said[:begin]] == [[event] for event in said[:begin]]
    assert not any(reply.add_event(event) for event in said[begin:])
    assert reply.end() == said[begin:]


def test_usage_is_summed_with_its_parts() -> None:
    one = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
        "service_tier": "standard",
        "iterations": [{"type": "message"}],
        "server_tool_use": None,
    }
    other = one | {"output_tokens": 7, "cache_creation": None, "server_tool_use": {"web_search_requests": 1}}
    rounds = [ROUNDS[0] | {"usage": one}, message([text("Done.")], usage=other)]
    exchange = Exchange(rounds, is_streamed=False)
    exchange.run()

    assert exchange.reply.body()["usage"] == {
        "input_tokens": 2,
        "output_tokens": 9,
        "cache_read_input_tokens": 6,
        "cache_creation_input_tokens": 18,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
        "service_tier": "standard",
        "iterations": [{"type": "message"}, {"type": "message"}],
        "server_tool_use": {"web_search_requests": 1},
    }


def test_the_end_of_the_last_round_is_the_end_of_the_reply() -> None:
    rounds = [ROUNDS[0], message([text("Done")], "stop_sequence", stop_sequence="!")]

    given = read_beta(streamed(*rounds))

    assert (given.stop_reason, given.stop_sequence, given.id) == ("stop_sequence", "!", "msg_1")


@pytest.mark.parametrize("stop", ["pause_turn", "refusal", "max_tokens"])
def test_the_reason_why_a_reply_ended_passes(stop: str) -> None:
    assert read_beta(streamed(ROUNDS[0], message([text("So")], stop))).stop_reason == stop


def test_a_reply_whose_calls_are_all_hidden_has_ended() -> None:
    assert read_beta(streamed(ROUNDS[0])).stop_reason == "end_turn"
    assert whole(ROUNDS[0])["stop_reason"] == "end_turn"


def test_a_reply_that_ends_in_text_shows_a_search_only_if_thinking_is_bound_or_hidden() -> None:
    rounds = [ROUNDS[0], message([thinking("So."), text("Done.")])]
    given = plain(read_beta(streamed(*rounds, binds_thinking=True)))

    assert [block["type"] for block in given[4:]] == ["server_tool_use", "tool_search_tool_result"]
    assert given[4]["id"] == given[5]["tool_use_id"]
    assert whole(*rounds, binds_thinking=True)["content"] == given
    assert whole(*rounds)["content"] == given
    thoughtless = [message([block for block in each["content"] if block["type"] != "thinking"]) for each in rounds]
    assert not any(block["type"] == "server_tool_use" for block in whole(*thoughtless)["content"])
    first, results, found, last = WIRE.restored([{"role": "assistant", "content": given}], BOUND)
    assert [first, last] == [{"role": "assistant", "content": each["content"]} for each in rounds]
    assert found == Found(("alpha", "beta"))
    assert blocks_of(cast("Block", results))[0]["tool_use_id"] == "toolu_1"


def test_a_call_that_was_cut_off_carries_nothing_if_thinking_is_bound() -> None:
    """Clients drop such a call, and the rest of the reply has to stay valid. So a search is shown before the call."""
    rounds = [ROUNDS[0], message([thinking("So."), text("Done."), call(KEPT, {}, "toolu_2")], "max_tokens")]
    given = plain(read_beta(streamed(*rounds, binds_thinking=True)))

    assert [block["type"] for block in given[4:]] == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    assert given[6]["id"] == "toolu_2"
    first, _, _, last = WIRE.restored([{"role": "assistant", "content": given[:6]}], BOUND)
    assert first == {"role": "assistant", "content": ROUNDS[0]["content"]}
    assert last == {"role": "assistant", "content": [thinking("So."), text("Done.")]}


def test_thinking_that_nothing_follows_is_left_out() -> None:
    """The API refuses it. A call that the client was not shown came after it."""
    given = plain(read_beta(streamed(message([thinking("Hm."), call(TOOL_NAME, {"queries": ""})]))))

    assert WIRE.restored([{"role": "assistant", "content": kept_by_clients(given, "drops")}], HISTORY) == []


def test_thinking_after_a_result_that_is_too_long_to_carry_is_left_out_if_it_is_bound() -> None:
    """The model read the result, and the history only says that it did."""
    long = call(OPERATORS, {"q": ""}, "toolu_1")
    rounds = [message([thinking("One."), long]), message([thinking("Two."), call(KEPT, {}, "toolu_2")])]
    reply = WIRE.open_reply(HELD, to_client, BOUND)
    reply.add_whole(rounds[0])
    reply.end_round([ToolResult("toolu_1", OPERATORS, (text_block("".join(map(chr, range(300, 9_000)))),))])
    reply.add_whole(rounds[1])
    history = [{"role": "assistant", "content": reply.body()["content"]}]

    first, results, last = WIRE.restored(history, BOUND)

    assert first == {"role": "assistant", "content": rounds[0]["content"]}
    assert blocks_of(cast("Block", results))[0]["content"] == [text("It ran, and its result was read then.")]
    assert last == {"role": "assistant", "content": rounds[1]["content"][1:]}
    assert WIRE.restored(history, HISTORY)[2] == {"role": "assistant", "content": rounds[1]["content"]}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("half", ["", '{"name": "clients_tool", "argum'])
def test_a_held_call_that_is_cut_off_never_runs_and_does_not_reach_the_client(name: str, half: str) -> None:
    said = message([text("So"), call(name, {})], "max_tokens")
    stream = stream_of(said).replace(b'"partial_json": ""', b'"partial_json": ' + json.dumps(half).encode())
    reply = WIRE.open_reply(HELD, to_client, HISTORY)

    given = [each for event in EventReader().add(stream) for each in reply.add_event(event)]

    assert [each.unfinished for each in reply.own_calls] == ["max_tokens"]
    ended = read_beta(b"".join(event.written() for event in [*given, *reply.end()]))
    assert (plain(ended), ended.stop_reason) == ([text("So")], "max_tokens")


def test_a_call_without_its_end_never_runs() -> None:
    """The reply says that it has finished, but the block of the call is still open. The client is told of the cut."""
    said = EventReader().add(stream_of(message([call(OPERATORS, {"q": 1})])))
    reply = WIRE.open_reply(HELD, to_client, HISTORY)

    given = [each for event in said if event.name != "content_block_stop" for each in reply.add_event(event)]

    assert [each.unfinished for each in reply.own_calls] == ["the call has no end"]
    assert read_beta(b"".join(event.written() for event in [*given, *reply.end()])).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    "arguments", ['{"name": "clients_tool"', "[1]", '{"name": "clients_tool", "arguments": {"n": 1e999}}']
)
def test_arguments_that_are_no_object_go_back_to_the_model_in_one(arguments: str) -> None:
    stream = stream_of(message([call(CALL_TOOL, {})])).replace(
        b'"partial_json": ""', b'"partial_json": ' + json.dumps(arguments).encode()
    )
    reply = WIRE.open_reply(HELD, to_client, BOUND)
    for event in EventReader().add(stream):
        reply.add_event(event)

    (own,) = reply.own_calls
    results = [ToolResult(own.id, CALL_TOOL, (text_block("no"),), is_error=True)]
    said, answered = reply.next_entries(results)
    shown = plain(
        read_beta(start_of(stream) + b"".join(each.written() for each in [*reply.end_round(results), *reply.end()]))
    )

    assert own.arguments == arguments
    assert said["content"] == [call(CALL_TOOL, {"arguments": arguments})]
    assert written(WIRE.restored([{"role": "assistant", "content": shown}], BOUND), []) == [said, answered]


def start_of(stream: bytes) -> bytes:
    return EventReader().add(stream)[0].raw


def test_a_reply_that_breaks_off_ends_with_an_error() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    came = EventReader().add(stream_of(ROUNDS[0]))[:-2]
    given = [each for event in came for each in reply.add_event(event)]
    assert not reply.is_whole
    assert reply.own_calls[0].unfinished

    with pytest.raises(APIStatusError, match="the model broke off"):
        read_beta(b"".join(event.written() for event in [*given, *reply.fail("the model broke off")]))


def test_an_error_of_the_model_passes_and_no_other_follows() -> None:
    error = Event.made("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    reply = WIRE.open_reply(HELD, to_client, HISTORY)

    assert reply.add_event(error) == [error]
    assert reply.fail("the model broke off") == []
    assert not reply.is_whole


def test_unreadable_events_pass() -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    deep = "[" * 100_000
    odd = [
        Event("content_block_start", "{"),
        Event("content_block_start", '{"type": "content_block_start"}'),
        Event("content_block_delta", '{"type": "content_block_delta", "index": []}'),
        Event("x", deep),
        Event("x", '{"type": {}}'),
        Event("", ""),
    ]

    assert [each for event in odd for each in reply.add_event(event)] == odd


@pytest.mark.parametrize(
    "content", ["text", None, [1], [{"type": "tool_use", "name": TOOL_NAME}], [{"type": "tool_use", "name": {}}]]
)
def test_odd_whole_replies_fail_nowhere(content: Any) -> None:
    reply = WIRE.open_reply(HELD, to_client, HISTORY)
    reply.add_whole({"content": content, "stop_reason": "tool_use", "usage": {"input_tokens": "x"}})
    results = [ToolResult(own.id, own.name, ()) for own in reply.own_calls]

    if results:
        reply.next_entries(results)
        reply.end_round(results)

    assert reply.body()["stop_reason"] in ("tool_use", "end_turn")


def test_errors_of_the_proxy_are_errors_of_the_sdk() -> None:
    SENT.update(status=b"429", content=json.dumps(WIRE.error_body("Slow down.", "too_many", 429)).encode())
    try:
        with pytest.raises(RateLimitError, match="Slow down"):
            SDK.messages.create(**ASKED)
    finally:
        del SENT["status"]


def test_an_untouched_history_stays_as_it_is() -> None:
    history: list[Any] = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [text("Hm."), call(KEPT, {}), call(CALL_TOOL, {"name": CLIENTS}, "toolu_2")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]},
        {
            "role": "assistant",
            "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}],
        },
        {"role": "assistant", "content": "Bye."},
        None,
        {"role": "assistant", "content": [call(KEPT, {}, "toolu_1_ts_x")]},
    ]

    assert WIRE.restored(history, HISTORY) == list(range(len(history)))


def test_results_of_own_calls_stand_before_those_of_the_client() -> None:
    said = message(
        [text("Both."), call(KEPT, {}, "toolu_1"), call(OPERATORS, {}, "toolu_2"), call(KEPT, {}, "toolu_3")]
    )
    given = whole(said)["content"]
    user = user_after(given, 1)

    answered, results = WIRE.restored([{"role": "assistant", "content": given}, user], HISTORY)

    assert [block["type"] for block in given] == ["text", "tool_use", "tool_use"]
    assert answered == {"role": "assistant", "content": said["content"]}
    assert isinstance(results, dict)
    assert [block.get("tool_use_id") for block in results["content"]] == ["toolu_2", "toolu_1", "toolu_3", None]


def test_two_calls_with_the_same_id_keep_their_own_places_and_results() -> None:
    calls = [call(OPERATORS, {"number": number}, "toolu_same") for number in (1, 2)]
    reply = whole(message([*calls, text("Well."), call(KEPT, {}, "toolu_kept")]))
    (kept,) = [block for block in reply["content"] if block["type"] == "tool_use"]

    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": kept["id"], "content": ""}]}
    restored = WIRE.restored([{"role": "assistant", "content": reply["content"]}, answer], HISTORY)
    said, results = cast("list[Any]", restored)
    assert [block.get("input") for block in said["content"]] == [{"number": 1}, {"number": 2}, None, {}]
    told = [json.dumps(block["content"]) for block in results["content"]]
    assert [number in each for number, each in zip("12", told, strict=False)] == [True, True]
