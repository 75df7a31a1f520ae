"""The proxy's benchmark: what its clients send, what they take for an answer, and how its figures are told."""

import asyncio

import pytest

from benchmarks.proxied_conversations import DIRECT, WIRES, Wire, played
from benchmarks.proxy import Connection, Process, Program, page_tables
from tests.kit.proxied import raw_api
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.formats import render_tools

TOOLS = [
    ToolDefinition(f"shop__{verb}_{thing}", f"{verb.capitalize()} a {thing} of the shop.", {"type": "object"})
    for verb in ("buy", "sell", "count", "move")
    for thing in ("book", "chair", "lamp", "apple", "coat")
]


def test_each_way_has_words_of_its_own_and_the_headers_that_it_needs() -> None:
    program = Program(WIRES[0], [], [{"role": "user", "content": "before"}])
    requests = {way: program.request(way, is_streamed=True) for way in (DIRECT, "off", "later", "begin", "search")}

    assert len({*requests.values()}) == len(requests)
    assert [way for way, request in requests.items() if b"x-toolsearch: off" in request] == ["off"]
    assert [way for way, request in requests.items() if b"x-searches: " in request] == ["search"]
    assert [way for way, request in requests.items() if b"before" not in request] == ["begin", "search"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 502 Bad\r\ncontent-length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"error":{}}',
        b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n"toolSearchTool"',
    ],
    ids=["status", "error", "a search that the client sees"],
)
def test_a_wrong_answer_is_no_measurement(answer: bytes) -> None:
    request = Program(WIRES[0], [], []).request("begin", is_streamed=False)

    async def ask(url: str) -> None:
        connection = await Connection.open(Process(url, 0))
        try:
            await connection.first_byte_ms(request)
        finally:
            await connection.aclose()

    with raw_api([answer]) as api, pytest.raises(RuntimeError):
        asyncio.run(ask(api.url))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_conversation_has_the_same_calls_and_less_to_read_through_the_proxy(wire: Wire) -> None:
    entries = render_tools(TOOLS, wire.wire_format)
    direct, _ = played(wire, entries, TOOLS)
    proxied, history = played(wire, entries, TOOLS, "fixed")

    assert (direct.calls, proxied.calls) == (10, 10)
    assert (direct.requests, proxied.requests) == (20, 25)
    assert (direct.breaks, proxied.breaks) == (0, 0)
    assert len(history) >= 40


def test_the_tables_have_a_row_for_each_way() -> None:
    added = {"wire": "chat", "way": "later", "p50_ms": 1.25, "p99_ms": 2.0, "cpu_ms": 3.0}
    together = {"wire": "chat", "way": "off", "streams": 100, "lost": 0, "p50_ms": 1.0, "p99_ms": 2.0, "cpu_ms": 3.0}
    tokens = dict.fromkeys(("requests", "prompt", "read", "written", "breaks", "calls"), 1_000)
    tables = page_tables(
        {
            "added": [added | {"is_streamed": False}, added | {"is_streamed": True, "p50_ms": 9.0}],
            "together": [together],
            "memory": {"conversations": 1_000, "before_mib": 200.0, "after_mib": 200.5, "kib_each": 0.51},
            "tokens": [tokens | {"wire": "chat", "way": "direct"}],
        }
    )

    assert tables["proxy added"][2:] == ["| chat | later | 1.2 | 2.0 | 3.0 | 9.0 | 2.0 | 3.0 |"]
    assert tables["proxy together"][2:] == ["| chat | off | 100 | 0 | 1.0 | 2.0 | 3.0 |"]
    assert tables["proxy memory"][2:] == ["| 1,000 | 200.0 | 200.5 | 0.5 |"]
    assert tables["proxy tokens"][2:] == ["| chat | direct | 1,000 | 1,000 | 1,000 | 1,000 | 1,000 | 1,000 |"]
