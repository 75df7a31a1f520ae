"""Scripted models: what a model says and calls in each round, and a proxy that runs its own calls and asks again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from hypothesis import strategies as st
from openai import OpenAI

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.carried import OwnAnswer
from toolsearch.wire.events import Event
from toolsearch.wire.proxied import History, ProxiedWire, Reply
from toolsearch.wire.proxied_parts import compact, read_object

HELD = (TOOL_NAME, CALL_TOOL)
OPERATORS = "notes"  # a tool that the proxy runs
CLIENTS = "weather"  # a tool of the client, held back and called by callTool
KEPT = "bash"  # a tool of the client that the model calls by its name


@dataclass(frozen=True)
class Said:
    """One round of a model. *calls* have the name and the arguments that the model writes."""

    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "tool_calls"
    usage: dict[str, Any] | None = field(default=None, compare=False)


def search(call_id: str, query: str = "rain") -> ToolCall:
    return ToolCall(call_id, TOOL_NAME, compact({"query": query}))


def by_call_tool(call_id: str, name: str = CLIENTS, arguments: str = '{"city":"Oslo"}') -> ToolCall:
    return ToolCall(call_id, CALL_TOOL, f'{{"name":"{name}","arguments":{arguments}}}')


def kept(call_id: str, arguments: str = '{"command":"ls"}') -> ToolCall:
    return ToolCall(call_id, KEPT, arguments)


def to_client(call: ToolCall) -> ToolCall | None:
    """A call by callTool is the client's if it names the tool of the client. Its arguments keep their text."""
    called = read_object(str(call.arguments)) or {}
    if call.name != CALL_TOOL or called.get("name") != CLIENTS:
        return None
    text = str(call.arguments)
    return ToolCall(call.id, CLIENTS, text[text.index('"arguments":') + len('"arguments":') : -1])


def answer_to_search(names: Sequence[str]) -> str:
    return f"Found: {', '.join(names)}"


HISTORY = History(frozenset({CLIENTS}), lambda names: OwnAnswer(answer_to_search(names)))


def result_of(call: ToolCall) -> ToolResult:
    """What the proxy answers: a search finds one tool, named after its query."""
    if call.name == TOOL_NAME:
        names = [call.parsed_arguments["query"]]
        return ToolResult(call.id, call.name, (text_block(answer_to_search(names)),), structured={"tools": names})
    return ToolResult(call.id, call.name, (text_block(f"Noted {call.id}"),))


def relay(
    wire: ProxiedWire, rounds: Sequence[Sequence[Event]], held: Sequence[str] = HELD
) -> tuple[list[Event], Reply, list[list[dict[str, Any]]]]:
    """Answer a client from *rounds* of a model. Gives its events, and what each further round was asked with."""
    reply = wire.open_reply(held, to_client, HISTORY)
    events: list[Event] = []
    asked: list[list[dict[str, Any]]] = []
    for sent in rounds:
        for event in sent:
            events += reply.add_event(event)
        assert reply.is_whole
        own = reply.own_calls
        if not own or any(call.unfinished for call in own):
            break
        results = [result_of(call) for call in own]
        is_last = reply.has_client_calls
        asked.append(reply.next_entries(results))
        events += reply.end_round(results)
        if is_last:
            break
    return [*events, *reply.end()], reply, asked


def relay_whole(
    wire: ProxiedWire, rounds: Sequence[dict[str, Any]], held: Sequence[str] = HELD
) -> tuple[dict[str, Any], Reply]:
    """The same for a model whose replies are not streamed."""
    reply = wire.open_reply(held, to_client, HISTORY)
    for sent in rounds:
        reply.add_whole(sent)
        own = reply.own_calls
        if not own or any(call.unfinished for call in own):
            break
        is_last = reply.has_client_calls
        reply.end_round([result_of(call) for call in own])
        if is_last:
            break
    return reply.body(), reply


_WORDS = st.text("ab é\n\U0001f600", max_size=8)
_KINDS = st.lists(st.sampled_from(["search", "client", "operator", "kept"]), max_size=4)


def _call(kind: str, call_id: str) -> ToolCall:
    match kind:
        case "search":
            return search(call_id, f"q_{call_id}")
        case "client":
            return by_call_tool(call_id)
        case "operator":
            return by_call_tool(call_id, OPERATORS, '{"text": "a \\u00e9"}')
        case _:
            return kept(call_id)


def is_own(call: ToolCall) -> bool:
    return call.name in HELD and to_client(call) is None


@st.composite
def conversations(draw: st.DrawFn) -> list[Said]:
    """Rounds of a model, up to the first that is the last: it holds calls of the client, or no calls at all."""
    rounds: list[Said] = []
    while True:
        number = len(rounds)
        kinds = draw(_KINDS) if number < 3 else draw(st.sampled_from([[], ["client"]]))
        calls = tuple(_call(kind, f"c{number}{place}") for place, kind in enumerate(kinds))
        rounds.append(Said(draw(_WORDS), draw(_WORDS), calls, "tool_calls" if calls else "stop"))
        if not calls or not all(map(is_own, calls)):
            return rounds


def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """*text* in pieces, some of them empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def carriers_in(value: object) -> list[str]:
    """The ids in *value*, which holds JSON, that carry something. Texts of the model may well hold the mark."""
    if isinstance(value, dict):
        ids = [value[key] for key in ("id", "call_id", "tool_use_id") if "_ts_" in str(value.get(key))]
        return ids + carriers_in(list(value.values()))
    return [each for part in value for each in carriers_in(part)] if isinstance(value, list) else []


def sdk(stream: bytes) -> OpenAI:
    """A client of OpenAI's whose requests are answered with *stream*. Making one takes long, so it has no TLS."""
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    http_client = httpx2.Client(transport=httpx2.MockTransport(lambda _: answer), verify=False, trust_env=False)
    return OpenAI(api_key="k", base_url="http://proxy/v1", http_client=http_client)


def written(events: Sequence[Event]) -> bytes:
    return b"".join(event.written() for event in events)


def event(data: dict[str, Any] | str, name: str = "") -> Event:
    """An event as it comes from a model, with bytes that no writer of ours would make."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(", ", ":"), ensure_ascii=False)
    raw = (f"event:{name}\n" if name else "").encode() + f"data:{text}\n\n".encode()
    return Event(name, text, raw)
