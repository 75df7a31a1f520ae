"""Cache counting, brains, faults, streams and the official SDKs."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.kit.strict_upstreams import (
    Fault,
    Need,
    RandomBrain,
    Reply,
    StrictUpstreams,
    TaskBrain,
    Text,
    Thinking,
    ToolCall,
    say,
    scripted,
)
from tests.kit.strict_upstreams.fuzz import Options, fuzz
from tests.kit.strict_upstreams.integration.conftest import Bench
from tests.kit.strict_upstreams.integration.test_messages_refusals import (
    LATER,
    MARK,
    TOOL,
    body,
    bot,
    result,
    text,
    user,
)
from tests.kit.strict_upstreams.integration.test_openai_refusals import chat, function, respond, tool
from tests.kit.strict_upstreams.streams import read_chat, read_messages, read_responses


def test_messages_cache_reads_up_to_marks(bench: Bench) -> None:
    words = "word " * 200
    first = body(user([{**text(words), "cache_control": MARK}]), tools=[TOOL])
    usage = bench.good("messages", first)["usage"]
    assert usage["cache_read_input_tokens"] == 0 and usage["cache_creation_input_tokens"] > 200
    again = bench.good("messages", first)["usage"]
    assert again["cache_read_input_tokens"] == usage["cache_creation_input_tokens"]
    longer = body(user([text(words)]), bot(text("a")), user([{**text("more"), "cache_control": MARK}]), tools=[TOOL])
    assert bench.good("messages", longer)["usage"]["cache_read_input_tokens"] == again["cache_read_input_tokens"]
    unmarked = body(user([text(words)]), tools=[TOOL])
    assert bench.good("messages", unmarked)["usage"]["cache_read_input_tokens"] == 0
    grown = {**first, "tools": [TOOL, {**TOOL, "name": "new"}]}
    assert bench.good("messages", grown)["usage"]["cache_read_input_tokens"] == 0
    record = bench.fake.requests[-1]
    assert record.tools_bytes > 100 and record.tool_names == ["look", "new"] and record.written_tokens > 200


def test_deferred_tools_do_not_move_the_prefix(bench: Bench) -> None:
    words = "deferred " * 100
    first = body(user([{**text(words), "cache_control": MARK}]), tools=[TOOL, LATER])
    bench.good("messages", first)
    more = {**first, "tools": [TOOL, LATER, {**LATER, "name": "latest"}]}
    assert bench.good("messages", more)["usage"]["cache_read_input_tokens"] > 100
    assert bench.good("messages", {**first, "tools": [TOOL]})["usage"]["cache_read_input_tokens"] == 0


def test_openai_cache_is_automatic(bench: Bench) -> None:
    messages: list[Any] = [user("w " * 400)]
    bench.good("chat/completions", chat(*messages, tools=[function()]))
    messages += [{"role": "assistant", "content": "x"}, user("next")]
    usage = bench.good("chat/completions", chat(*messages, tools=[function()]))["usage"]
    assert 0 < usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]
    usage = bench.good("chat/completions", chat(*messages, tools=[function(), function("more")]))["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] < 100
    bench.good("responses", respond(user("w " * 400), tools=[tool()]))
    added = {"type": "additional_tools", "role": "developer", "tools": [tool("more")]}
    usage = bench.good("responses", respond(user("w " * 400), added, user("x"), tools=[tool()]))["usage"]
    assert usage["input_tokens_details"]["cached_tokens"] > 150


def test_task_brain_calls_directly_or_through_the_pair(bench: Bench) -> None:
    need = Need("send_mail", {"to": "a"}, "send an e-mail")
    bench.fake.brain = brain = TaskBrain([need], "All sent.")
    direct = body(user("go"), tools=[{**TOOL, "name": "send_mail"}])
    assert bench.good("messages", direct)["content"][0]["name"] == "send_mail"
    queries = {"type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}}}}
    through = {"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}}
    tools = [{"name": "toolSearchTool", "input_schema": queries}, {"name": "callTool", "input_schema": through}]
    request = body(user("go"), tools=tools)
    seen = []
    for answer in ("<tool name=send_mail>…</tool>", "sent"):
        block = bench.good("messages", request)["content"][0]
        seen.append((block["name"], block["input"]))
        request["messages"] += [bot(block), user([result(block["id"], answer)])]
    assert seen == [
        ("toolSearchTool", {"queries": ["send an e-mail"]}),
        ("callTool", {"name": "send_mail", "arguments": {"to": "a"}}),
    ]
    assert bench.good("messages", request)["content"][0]["text"] == "All sent."
    assert brain.missed == []
    bench.good("messages", body(user("go"), tools=[TOOL]))
    assert brain.missed == ["send_mail"]


def test_choices_are_kept(bench: Bench) -> None:
    bench.fake.brain = say("no calls")
    forced = chat(tools=[function("a"), function("b")], tool_choice={"type": "function", "function": {"name": "b"}})
    calls = bench.good("chat/completions", forced)["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["b"]
    bench.fake.brain = scripted([Reply([ToolCall("a"), ToolCall("b")])])
    single = chat(tools=[function("a"), function("b")], parallel_tool_calls=False)
    assert len(bench.good("chat/completions", single)["choices"][0]["message"]["tool_calls"]) == 1


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("messages", body(tools=[TOOL])),
    ("responses", respond(tools=[tool()])),
    ("chat/completions", chat()),
]


@pytest.mark.parametrize(("path", "request_body"), BODIES)
@pytest.mark.parametrize("stream", [False, True])
def test_faults(bench: Bench, path: str, request_body: dict[str, Any], stream: bool) -> None:
    request = {**request_body, "stream": stream}
    bench.fake.brain = say("some longer text " * 20)

    def fault(one: Fault) -> None:
        bench.fake.faults = lambda number, wire: one

    for status in (429, 500, 529):
        fault(Fault("status", status=status, retry_after="3"))
        answer = bench.post(path, request)
        assert answer.status_code == status and answer.headers["retry-after"] == "3" and "error" in answer.json()
    fault(Fault("cut", event=3))
    with pytest.raises(httpx.RemoteProtocolError):
        bench.post(path, request)
    fault(Fault("hang", seconds=0.05))
    with pytest.raises(httpx.RemoteProtocolError):
        bench.post(path, request)
    for kind in ("junk", "close", "empty"):
        fault(Fault(kind, event=3))
        answer = bench.post(path, request)
        assert answer.status_code == 200
        with pytest.raises((ValueError, AssertionError)):
            assert not stream and answer.json()
    fault(Fault("drip", seconds=0.001))
    assert bench.post(path, request).status_code == 200
    if stream:
        fault(Fault("error_event", event=3, status=529))
        assert '"error"' in bench.post(path, request).text
    assert bench.fake.requests[-1].fault


def test_faults_by_number() -> None:
    fake = StrictUpstreams(say("x"), faults={1: Fault("status", status=529)})
    with fake.serve() as base:
        local = Bench(fake, base)
        assert [local.post("messages", body()).status_code for _ in range(3)] == [200, 529, 200]


def test_official_sdks_read_every_stream() -> None:
    anthropic = pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")
    fake = StrictUpstreams(RandomBrain(5, broken=False))
    with (
        fake.serve() as base,
        anthropic.Anthropic(base_url=base, api_key="k", max_retries=0) as claude,
        openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0) as gpt,
    ):
        for number in range(25):
            words = f"question {number}"
            with claude.messages.stream(
                model="claude-fable-5-1", max_tokens=99, tools=[TOOL], messages=[user(words)]
            ) as stream:
                message = stream.get_final_message()
            whole = claude.messages.create(
                model="claude-fable-5-1", max_tokens=99, tools=[TOOL], messages=[user(words)]
            )
            assert [block.type for block in message.content] == [block.type for block in whole.content]
            assert message.stop_reason == whole.stop_reason
            with gpt.responses.stream(model="gpt-5.6", input=words, tools=[tool()]) as events:
                assert list(events)[-1].type in ("response.completed", "response.incomplete")
            with gpt.chat.completions.stream(model="gpt-4o", messages=[user(words)]) as chunks:
                for _ in chunks:
                    pass
        assert claude.models.list().data and gpt.models.list().data
        assert claude.messages.count_tokens(model="claude-opus-5", messages=[user()]).input_tokens
    assert fake.refusals == []


def lines(bench: Bench, path: str, request: dict[str, Any]) -> list[str]:
    bench.fake.brain = scripted([Reply([Thinking("hm"), Text("some text"), ToolCall("look", {"q": "x"})])] * 2)
    return bench.post(path, {**request, "stream": True}).text.split("\n\n")[:-1]


@pytest.mark.parametrize(("path", "request_body"), BODIES)
def test_readers_note_every_lost_moved_or_doubled_event(bench: Bench, path: str, request_body: dict[str, Any]) -> None:
    request = dict(request_body)
    if path.startswith("chat"):
        request.update(tools=[function()], stream_options={"include_usage": True})
    events = lines(bench, path, request)

    def read(parts: list[str]) -> Any:
        whole = "\n\n".join(parts) + "\n\n"
        if path == "messages":
            return read_messages(whole)
        return read_responses(whole) if path == "responses" else read_chat(whole, True)

    good = read(events)
    assert good.problems == [] and good.reply
    free = ('"ping"', "text_delta", "thinking_delta", "input_json_delta")
    for at, event in enumerate(events):
        if path == "messages" and any(word in event for word in free):
            continue
        if (
            path.startswith("chat")
            and '"finish_reason":null' in event
            and '"role"' not in event
            and '"id":"call' not in event
        ):
            continue
        lost = read(events[:at] + events[at + 1 :])
        assert lost.problems or lost.reply != good.reply, event
        if "event: message_delta" in event:
            continue
        doubled = read(events[: at + 1] + events[at:])
        assert doubled.problems or doubled.reply != good.reply, event
    assert read(events[:-1]).problems
    assert read([*events[:-2], events[-1], events[-2]]).problems


@pytest.mark.parametrize("wire", ["messages", "responses", "chat"])
def test_fuzzing_the_fake_itself(wire: Any) -> None:
    fake = StrictUpstreams(RandomBrain(11), keep_bodies=False)
    with fake.serve() as base:
        report = fuzz(base, wire, conversations=40, seed=1)
    assert report.problems == [] and fake.refusals == []
    assert report.calls > 100 and report.forks and report.compactions and report.repeats and report.cached_tokens


def test_the_fuzzer_reports_what_goes_wrong() -> None:
    kinds = [
        Fault("cut", event=2),
        Fault("status", status=529),
        Fault("close", event=4),
        Fault("junk"),
        Fault("error_event", event=2),
    ]
    fake = StrictUpstreams(RandomBrain(2), faults=lambda number, wire: kinds[number % 5] if number % 7 == 3 else None)
    with fake.serve() as base:
        for wire in ("messages", "responses", "chat"):
            report = fuzz(base, wire, conversations=8, seed=2, options=Options(stream=0.8))
            assert {"violation", "status", "transport"} <= {problem.kind for problem in report.problems}, str(report)
            assert json.dumps([str(problem) for problem in report.problems])
    assert not fake.refusals
