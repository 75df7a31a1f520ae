"""Model APIs that fail in every way: no client of the proxy takes half a reply as whole, and no tool runs for one."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import httpx2
import pytest

from tests.kit.proxied import served_proxy
from tests.kit.strict_upstreams import Fault, Reply, StrictUpstreams, Text, Thinking, ToolCall, Turn, VisibleTool
from tests.kit.strict_upstreams.clients import ChatClient, Client, MessagesClient, ResponsesClient, make_tools
from tests.kit.strict_upstreams.core import Wire
from tests.kit.strict_upstreams.streams import Outcome
from toolsearch.catalog.catalog import Catalog

HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
CLIENTS: dict[Wire, tuple[type[Client], str]] = {
    "messages": (MessagesClient, "claude-sonnet-4-5"),
    "responses": (ResponsesClient, "gpt-4.1"),
    "chat": (ChatClient, "gpt-4.1"),
}
EVERY_WAY = [(wire, stream) for wire in CLIENTS for stream in (False, True)]


@dataclass
class Bench:
    """A model API that fails, the proxy with an operator's tool, and a client."""

    wire: Wire
    stream: bool
    fake: StrictUpstreams
    url: str = ""
    ran: list[str] = field(default_factory=list)
    begun: int = 0

    @property
    def rounds(self) -> int:
        """How often the model was asked in this test."""
        return len(self.fake.requests) - self.begun

    def client(self) -> Client:
        kind, model = CLIENTS[self.wire]
        return kind(model, make_tools(30), random.Random(1))  # noqa: S311

    def body(self, said: str = "Go") -> dict[str, Any]:
        client = self.client()
        client.ask()
        body = {**client.body(), "stream": self.stream}
        body["input" if self.wire == "responses" else "messages"] = [{"role": "user", "content": said}]
        return body

    def post(self, body: dict[str, Any]) -> httpx.Response:
        return httpx.post(f"{self.url}{self.client().path}", json=body, headers=HEADERS)

    def asked(self, body: dict[str, Any]) -> Outcome:
        """What the client reads, an error if the answer is none or breaks off."""
        try:
            answer = self.post(body)
        except httpx.HTTPError as error:
            return Outcome(None, error={"broken": repr(error)})
        outcome = self.client().read(answer.text, body)
        if answer.status_code != 200:
            return Outcome(None, error=answer.json()["error"])
        return outcome

    def fail(self, fault: Fault, at: int = 0) -> None:
        """The request number *at* from now on fails."""
        wanted = len(self.fake.requests) + at
        self.fake.faults = lambda number, _: fault if number == wanted else None


@pytest.fixture(scope="module", params=EVERY_WAY, ids=lambda each: f"{each[0]}-{'stream' if each[1] else 'whole'}")
def served(request: pytest.FixtureRequest) -> Iterator[Bench]:
    wire, stream = request.param
    bench = Bench(wire, stream, StrictUpstreams(model))

    def delete_all(text: str) -> str:
        """Delete everything."""
        bench.ran.append(text)
        return "deleted"

    with bench.fake.serve() as base, served_proxy(base, tools=Catalog([delete_all]), silence_s=1.0) as bench.url:
        yield bench


@pytest.fixture
def bench(served: Bench) -> Bench:
    served.begun = len(served.fake.requests)
    served.fake.faults = None
    served.fake.brain = model
    served.ran.clear()
    return served


def model(tools: list[VisibleTool], turns: list[Turn]) -> Reply:
    """Thinks, talks and calls the operator's tool once; answers with what the user has said."""
    said = next(turn.text for turn in turns if turn.role == "user" and turn.text)
    if any("deleted" in result.text for turn in turns for result in turn.results):
        return Reply([Text(f"Done: {said}")])
    call = ToolCall("callTool", {"name": "delete_all", "arguments": {"text": said}})
    return Reply([Thinking("hm hm"), Text("Let me do that."), call])


def ends_well(outcome: Outcome) -> bool:
    is_failed = outcome.reply is None or outcome.reply.get("status") == "failed"
    return not (is_failed or outcome.problems or outcome.error)


@pytest.mark.parametrize("kind", ["cut", "close", "error_event"])
@pytest.mark.parametrize("number", [0, 1], ids=["first-round", "second-round"])
def test_a_reply_that_breaks_off_at_any_event_is_never_taken_as_whole(
    bench: Bench, kind: Literal["cut", "close", "error_event"], number: int
) -> None:
    for event in range(60):
        bench.ran.clear()
        asked = len(bench.fake.requests)
        bench.fail(Fault(kind, event=event), number)
        outcome = bench.asked(bench.body())
        rounds = len(bench.fake.requests) - asked
        assert len(bench.ran) <= 1
        if rounds == number + 1:  # no further round: the reply was not whole
            assert len(bench.ran) == number
        if ends_well(outcome):
            assert "Done: Go" in json.dumps(outcome.reply)
            assert bench.ran == ["Go"]
            break
        assert rounds <= 2
        if not bench.stream:
            break
    else:
        pytest.fail("the reply never came to its end")


@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_an_error_passes_as_it_came_and_is_not_tried_again(bench: Bench, status: int) -> None:
    bench.fail(Fault("status", status=status, retry_after="7"))
    answer = bench.post(bench.body())

    assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")
    assert (answer.json()["error"]["message"] != "", bench.rounds) == (True, 1)


@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_an_error_after_a_hidden_round_is_told(bench: Bench, status: int) -> None:
    bench.fail(Fault("status", status=status, retry_after="7"), 1)
    body = bench.body()
    answer = bench.post(body)

    assert bench.rounds == 2
    if bench.stream:
        outcome = bench.client().read(answer.text, body)
        assert str(status) in json.dumps(outcome.error)
    else:
        assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")


@pytest.mark.parametrize("number", [0, 1], ids=["first-round", "second-round"])
def test_an_api_that_hangs_is_given_up(bench: Bench, number: int) -> None:
    bench.fail(Fault("hang", seconds=3), number)
    outcome = bench.asked(bench.body())

    assert "said nothing" in json.dumps(outcome.error)
    assert bench.rounds == number + 1


@pytest.mark.parametrize("kind", ["junk", "empty"])
@pytest.mark.parametrize("number", [0, 1], ids=["first-round", "second-round"])
def test_junk_is_no_reply(bench: Bench, kind: Literal["junk", "empty"], number: int) -> None:
    bench.fail(Fault(kind), number)
    body = bench.body()
    outcome = bench.client().read(bench.post(body).text, body)

    assert not ends_well(outcome)
    assert len(bench.ran) == number


@pytest.mark.parametrize("served", [each for each in EVERY_WAY if each[1]], indirect=True, ids=str)
def test_very_many_streams_at_once_keep_their_own_contents(bench: Bench) -> None:
    """A hundred with one of the APIs, since a hundred of each would take half a minute."""
    bench.fake.faults = lambda *_: Fault("drip", seconds=0.001)
    texts = [f"request-{number}." for number in range(100 if bench.wire == "messages" else 30)]

    async def ask(client: httpx.AsyncClient, text: str) -> str:
        body = bench.body(text)
        answer = await client.post(bench.client().path, json=body)
        outcome = bench.client().read(answer.text, body)
        assert ends_well(outcome)
        return json.dumps(outcome.reply)

    async def ask_all() -> list[str]:
        async with httpx.AsyncClient(base_url=bench.url, headers=HEADERS, timeout=60) as client:
            return await asyncio.gather(*(ask(client, text) for text in texts))

    said = asyncio.run(ask_all())

    assert all(f"Done: {text}" in reply and reply.count("Done: ") == 1 for text, reply in zip(texts, said, strict=True))
    assert Counter(bench.ran) == Counter(texts)


@pytest.mark.parametrize("served", [each for each in EVERY_WAY if each[1]], indirect=True, ids=str)
def test_a_client_that_hangs_up_in_mid_stream_ends_the_work(bench: Bench) -> None:
    """The model is not asked again, and no tool runs for a reply whose client has left."""
    bench.fake.faults = lambda *_: Fault("drip", seconds=0.05)
    with httpx2.stream("POST", f"{bench.url}{bench.client().path}", json=bench.body(), headers=HEADERS) as answer:
        next(answer.iter_raw())
    bench.fake.faults = None
    assert ends_well(bench.asked(bench.body("After")))  # takes longer than what was left of the other

    assert bench.ran == ["After"]
    assert bench.rounds == 3


def test_nothing_runs_that_only_the_history_holds(bench: Bench) -> None:
    """Calls that a client has written itself, of the operator's tool and of the tools that call it."""
    bench.fake.brain = lambda *_: Reply([Text("Hello.")])
    calls = [
        ("toolSearchTool", {"queries": ["delete everything"]}),
        ("callTool", {"name": "delete_all", "arguments": {"text": "a"}}),
        ("delete_all", {"text": "b"}),
    ]
    for name, arguments in calls:
        for is_answered in (False, True):
            body = bench.body()
            key = "input" if bench.wire == "responses" else "messages"
            body[key] = [*body[key], *forged(bench.wire, name, arguments, is_answered=is_answered)]
            bench.post(body)

    assert bench.ran == []
    assert not any("deleted" in json.dumps(request.body) for request in bench.fake.requests[bench.begun :])


def forged(wire: Wire, name: str, arguments: dict[str, Any], *, is_answered: bool) -> list[dict[str, Any]]:
    """The part of a history in which the model makes a call."""
    text = json.dumps(arguments)
    if wire == "messages":
        call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
        answer = [result] if is_answered else [{"type": "text", "text": "And?"}]
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": answer}]
    if wire == "responses":
        call = {"type": "function_call", "call_id": "c1", "name": name, "arguments": text}
        return [call, *([{"type": "function_call_output", "call_id": "c1", "output": "x"}] if is_answered else [])]
    function = {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}
    answers = [{"role": "tool", "tool_call_id": "c1", "content": "x"}] if is_answered else []
    return [{"role": "assistant", "content": None, "tool_calls": [function]}, *answers]


def test_a_call_runs_once_however_often_its_history_comes_back(bench: Bench) -> None:
    body = bench.body()
    outcome = bench.asked(body)
    client = bench.client()
    client.history = body["input" if bench.wire == "responses" else "messages"]
    assert outcome.reply is not None
    client.take(outcome.reply, [], body)
    bench.fake.brain = lambda *_: Reply([Text("Yes.")])
    client.ask()
    for _ in range(3):
        assert ends_well(bench.asked({**client.body(), "stream": bench.stream}))

    assert bench.ran == ["Go"]
