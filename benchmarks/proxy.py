"""What does the proxy add to a request of a program with 500 tools of its own, and what does it save?

    python -m benchmarks.proxy [--turns 30] [--conversations 1000] [--wires messages,responses,chat] [--json FILE]

The real ``toolsearch proxy`` stands in front of a model API that answers at once, each in a process of its own. The
ways to send a request are taken by turns, and their bodies hold the same 500 real tools:

    direct   to the model API
    off      through the proxy, with the header that switches it off: a bare pass-through
    later    in play: one more message in a conversation of ten turns
    begin    in play: the first message of a conversation, with a list that the proxy knows
    search   the same, where the model searches before it answers
    new      in play: the first request with a list of other tools, for which an index is made

*Added* is the time to the first byte of the answer's body, less that of the direct request of the same turn. Clients,
proxy and model API share the machine, so compare these times with those of "off". CPU time is the proxy's alone.
``benchmarks/proxied_conversations.py`` plays the conversations whose tokens are told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.catalogues import real_catalogue
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.memory import resident_kib
from benchmarks.pages.quality import Tables
from benchmarks.proxied_conversations import DIRECT, QUERY, WIRES, Tokens, Wire, claude_code, played
from benchmarks.results import write_figures
from tests.kit.commands import start_python
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.formats import render_tools

TOOLS: Final = 500
TOGETHER: Final = 100  # streams
WAYS: Final = (DIRECT, "off", "later", "begin", "search")
_BLOCK: Final = 5  # requests of one way in a turn
_NEW_LISTS: Final = 6
_PROXY: Final = ("-m", "toolsearch", "proxy", "--bind", "127.0.0.1:0", "--upstream")
_UPSTREAM: Final = ("-m", "benchmarks._proxy_upstream")
_ERROR: Final = re.compile(rb'"error": ?\{')
_NUMBERS: Final = count(1)  # no two requests hold the same words


@dataclass(frozen=True, slots=True)
class Added:
    """Milliseconds; *cpu_ms* is the median over turns, for each request."""

    wire: str
    way: str
    is_streamed: bool
    p50_ms: float
    p99_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Together:
    """Streams that were all open at once. Milliseconds to the first byte, and of CPU time for each stream."""

    wire: str
    way: str
    streams: int
    lost: int
    p50_ms: float
    p99_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the proxy holds for itself, before and after so many conversations, each with a search."""

    conversations: int
    before_mib: float
    after_mib: float
    kib_each: float


@dataclass(frozen=True)
class Process:
    """A server in a process of its own."""

    url: str
    pid: int

    @property
    def cpu_s(self) -> float:
        return time.clock_gettime(~self.pid << 3 | 2)  # the clock of all threads of a process, as Linux numbers it


@dataclass(frozen=True)
class Program:
    """A client's requests: its *tools* and its conversation of ten turns, in the form of one API."""

    wire: Wire
    tools: Sequence[Mapping[str, Any]]
    history: Sequence[Any]

    def request(self, way: str, *, is_streamed: bool, together: int = 0) -> bytes:
        number = next(_NUMBERS)
        headers = {"x-toolsearch": "off"} if way == "off" else {"x-searches": str(number)} if way == "search" else {}
        if together:
            headers["x-together"] = str(together)
        entries: Sequence[Any] = [] if way in ("begin", "search", "new") else self.history
        words = {"role": "user", "content": f"Tell me about the matter with the number {number} of the {QUERY}."}
        body = (
            f'{{"model":"claude-sonnet-5-5","max_tokens":99,"stream":{json.dumps(is_streamed)},'
            f'"{self.wire.entries}":{json.dumps([*entries, words])},"tools":{self._tools_text}}}'
        ).encode()
        lines = [
            f"POST {self.wire.path} HTTP/1.1",
            "host: HOST",
            "content-type: application/json",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    @cached_property
    def _tools_text(self) -> str:
        return json.dumps(self.tools)


class Connection:
    """One that stays open, over which requests go one after another."""

    def __init__(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host, self._reader, self._writer = host.encode(), reader, writer

    @classmethod
    async def open(cls, process: Process) -> Connection:
        address = urlsplit(process.url)
        return cls(address.netloc, *await asyncio.open_connection(address.hostname, address.port))

    async def first_byte_ms(self, request: bytes) -> float:
        """How long the body of the answer takes to begin. Raises RuntimeError if it is an error."""
        content = request.replace(b"HOST", self._host, 1)
        begun = time.perf_counter()
        self._writer.write(content)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        body = await self._reader.read(65_536)
        taken_ms = (time.perf_counter() - begun) * 1_000
        _, _, length = head.partition(b"content-length: ")
        while len(body) < int(length.split(b"\r\n")[0]) if length else not body.endswith(b"\r\n0\r\n\r\n"):
            body += await self._reader.read(65_536)
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"{head[:30]!r}: {body[:300]!r}")
        if _ERROR.search(body) or b"toolSearchTool" in body:
            raise RuntimeError(f"the answer is wrong: {body[:300]!r}")
        return taken_ms

    async def aclose(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    every = real_catalogue()
    lists = [every[place :: len(every) // TOOLS][:TOOLS] for place in range(1 + _NEW_LISTS)]
    wires = [wire for wire in WIRES if wire.name in options.wires]
    tokens, programs = _conversations(wires, lists[0])
    if options.claude_code:
        with TemporaryDirectory() as folder:
            tokens += claude_code(Path(folder))
    with running(*_UPSTREAM) as upstream, running(*_PROXY, upstream.url) as proxy:
        figures = asyncio.run(_measured(upstream, proxy, programs, lists[1:], options.turns, options.conversations))
    figures["tokens"] = [asdict(each) for each in tokens]
    for name, rows in _rows(figures).items():
        print_table(_COLUMNS[name], rows, title=name, by_first=True)
    if options.json:
        write_figures(options.json, "proxy", figures)
    return 0


def _conversations(wires: Sequence[Wire], tools: Sequence[ToolDefinition]) -> tuple[list[Tokens], list[Program]]:
    """The tokens of each way, and programs that have had the conversation in the way that works everywhere."""
    tokens, programs = list[Tokens](), list[Program]()
    for wire in wires:
        entries = render_tools(tools, wire.wire_format)
        conversations = {way: played(wire, entries, tools, way) for way in (DIRECT, *wire.modes)}
        tokens += [counted for counted, _ in conversations.values()]
        programs.append(Program(wire, entries, conversations["fixed"][1]))
    return tokens, programs


@contextmanager
def running(*command: str) -> Generator[Process]:
    """Start a server that says its address in its first lines."""
    with start_python(*command, NO_PROXY="127.0.0.1") as process:
        try:
            yield Process(_address_told(process.stdout or ()), process.pid)
        finally:
            process.kill()


def _address_told(lines: Any) -> str:
    words = (word for line in lines if not line.startswith("In front of") for word in line.split())
    return next(f"http{url}" for word in words for _, found, url in [word.partition("http")] if found)


async def _measured(
    upstream: Process,
    proxy: Process,
    programs: Sequence[Program],
    lists: Sequence[Sequence[ToolDefinition]],
    turns: int,
    conversations: int,
) -> dict[str, Any]:
    direct, proxied = await Connection.open(upstream), await Connection.open(proxy)
    by_way = {way: direct if way == DIRECT else proxied for way in WAYS}
    added, together = list[Added](), list[Together]()
    for program in programs:
        for is_streamed in (False, True):
            await _added(program, by_way, proxy, 2, is_streamed=is_streamed)  # a warm-up
            added += await _added(program, by_way, proxy, turns, is_streamed=is_streamed)
        added.append(await _of_new_lists(program.wire, direct, proxied, proxy, lists))
        together += [await _together(program, way, proxy) for way in ("off", "later")]
    memory = await _memory(programs[0], proxied, proxy, conversations)
    for connection in (direct, proxied):
        await connection.aclose()
    return {
        "added": [asdict(each) for each in added],
        "together": [asdict(each) for each in together],
        "memory": asdict(memory),
    }


async def _added(
    program: Program, by_way: Mapping[str, Connection], proxy: Process, turns: int, *, is_streamed: bool
) -> list[Added]:
    taken_ms = {way: list[float]() for way in by_way}
    cpu_ms = {way: list[float]() for way in by_way}
    for _ in range(turns):
        for way, connection in by_way.items():
            requests = [program.request(way, is_streamed=is_streamed) for _ in range(_BLOCK)]
            cpu_s = proxy.cpu_s
            taken_ms[way] += [await connection.first_byte_ms(request) for request in requests]
            cpu_ms[way].append((proxy.cpu_s - cpu_s) * 1_000 / _BLOCK)
    return [
        _row(program.wire, way, _differences(taken_ms[way], taken_ms[DIRECT]), cpu_ms[way], is_streamed=is_streamed)
        for way in by_way
        if way != DIRECT
    ]


async def _of_new_lists(
    wire: Wire, direct: Connection, proxied: Connection, proxy: Process, lists: Sequence[Sequence[ToolDefinition]]
) -> Added:
    added_ms, cpu_ms = list[float](), list[float]()
    for tools in lists:
        request = Program(wire, render_tools(tools, wire.wire_format), ()).request("new", is_streamed=False)
        direct_ms, cpu_s = await direct.first_byte_ms(request), proxy.cpu_s
        added_ms.append(await proxied.first_byte_ms(request) - direct_ms)
        cpu_ms.append((proxy.cpu_s - cpu_s) * 1_000)
    return _row(wire, "new", added_ms, cpu_ms, is_streamed=False)


async def _together(program: Program, way: str, proxy: Process) -> Together:
    connections = [await Connection.open(proxy) for _ in range(TOGETHER)]
    requests = [program.request(way, is_streamed=True, together=TOGETHER) for _ in connections]
    cpu_s = proxy.cpu_s
    asked = (each.first_byte_ms(request) for each, request in zip(connections, requests, strict=True))
    answered = await asyncio.gather(*asked, return_exceptions=True)
    cpu_ms = (proxy.cpu_s - cpu_s) * 1_000 / TOGETHER
    for each in connections:
        await each.aclose()
    taken_ms = sorted(each for each in answered if isinstance(each, float))
    p50_ms, p99_ms = _percentiles(taken_ms)
    return Together(program.wire.name, way, TOGETHER, TOGETHER - len(taken_ms), p50_ms, p99_ms, round(cpu_ms, 2))


async def _memory(program: Program, proxied: Connection, proxy: Process, conversations: int) -> Memory:
    before_kib, _ = resident_kib(proxy.pid)
    for _ in range(conversations):
        for way in ("search", "later"):
            await proxied.first_byte_ms(program.request(way, is_streamed=True))
    after_kib, _ = resident_kib(proxy.pid)
    each_kib = (after_kib - before_kib) / conversations
    return Memory(conversations, round(before_kib / 1024, 1), round(after_kib / 1024, 1), round(each_kib, 2))


def _row(wire: Wire, way: str, added_ms: Sequence[float], cpu_ms: Sequence[float], *, is_streamed: bool) -> Added:
    return Added(
        wire.name, way, is_streamed, *_percentiles(sorted(added_ms)), cpu_ms=round(statistics.median(cpu_ms), 2)
    )


def _differences(taken: Sequence[float], direct: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(taken, direct, strict=True)]


def _percentiles(taken_ms: Sequence[float]) -> tuple[float, float]:
    """The 50th and the 99th of sorted times."""
    if not taken_ms:
        return 0.0, 0.0
    return round(statistics.median(taken_ms), 2), round(taken_ms[len(taken_ms) * 99 // 100], 2)


# What is told

_COLUMNS: Final = {
    "proxy added": ("API", "", "added p50 ms", "added p99 ms", "CPU ms", "streamed: p50 ms", "p99 ms", "CPU ms"),
    "proxy together": ("API", "", "streams at once", "lost", "first byte p50 ms", "p99 ms", "CPU ms each"),
    "proxy memory": ("conversations", "MiB before", "MiB after", "KiB each"),
    "proxy tokens": ("API", "way", "requests", "prompt tokens", "read from the cache", "written", "breaks", "calls"),
}


def page_tables(figures: Mapping[str, Any]) -> Tables:
    return {name: markdown_table(_COLUMNS[name], rows) for name, rows in _rows(figures).items()}


def _rows(figures: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    by_place = dict[tuple[str, str], list[str]]()
    for each in figures["added"]:
        cells = by_place.setdefault((each["wire"], each["way"]), [])
        cells += [f"{each[name]:,.1f}" for name in ("p50_ms", "p99_ms", "cpu_ms")]
    return {
        "proxy added": [[*place, *cells, *[""] * (6 - len(cells))] for place, cells in by_place.items()],
        "proxy together": [
            [each["wire"], each["way"], str(each["streams"]), str(each["lost"])]
            + [f"{each[name]:,.1f}" for name in ("p50_ms", "p99_ms", "cpu_ms")]
            for each in figures["together"]
        ],
        "proxy memory": [
            [f"{figures['memory']['conversations']:,}"]
            + [f"{figures['memory'][name]:,.1f}" for name in ("before_mib", "after_mib", "kib_each")]
        ],
        "proxy tokens": [
            [each["wire"], each["way"]]
            + [f"{each[name]:,}" for name in ("requests", "prompt", "read", "written", "breaks", "calls")]
            for each in figures["tokens"]
        ],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=30, help=f"of {_BLOCK} requests of each way")
    parser.add_argument("--conversations", type=int, default=1_000, help="between two looks at the memory")
    names = [wire.name for wire in WIRES]
    parser.add_argument("--wires", type=lambda text: text.split(","), default=names, help="by comma")
    parser.add_argument("--claude-code", action="store_true", help="count the tokens of that program, too")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
