"""Which of two versions is faster, as they are installed? CPU and wall time and memory of two checkouts, by turns

    python -m benchmarks.speed_paired OLD NEW [--sizes 10000,36900] [--rounds 5] [--json FILE]

OLD and NEW are checkouts, as ``git worktree add ../old COMMIT`` makes them. Each runs in a process of its own, in the
environment at hand but for OMP_NUM_THREADS and its like. They do the same by turns, so that both meet the machine in
the same states: compare the two, not the figures of two runs. CPU time is summed over all threads. In the rows "against
one thread alone", the old one is NEW with those variables at 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from benchmarks.baselines import RankBm25, prepared_words
from benchmarks.busy import busy_processes
from benchmarks.catalogues import evenly, real_catalogue, synthetic_documents, varied_documents
from benchmarks.datasets import SETS, set_folders
from benchmarks.figure_tables import print_table
from benchmarks.latency import all_text, requests_for
from benchmarks.results import write_figures
from benchmarks.stdio_gateway import StdioGateway
from toolsearch.catalog.indexing import document_of
from toolsearch.errors import SourceError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced
from toolsearch_indexes.documents import ToolDocument

_Side = TypeVar("_Side", bound=Hashable)
Taken: TypeAlias = list[list[float]]  # CPU and wall milliseconds of each time; of memory, now and at most

_WORKER: Final = Path(__file__).with_name("_speed_worker.py")
_SERVER: Final = Path(__file__).with_name("_speed_server.py")
_SERVERS: Final = 5  # behind a gateway
_CALLS: Final = 30  # through it in each round
_UNTIL_LISTED_S: Final = 60
_SENTENCES: Final = 4  # of the requests of several
_QUERIES: Final = 100  # in each round
_SLOW: Final = 10  # of what takes tens of milliseconds
_AS_INSTALLED: Final[Mapping[str, str]] = {}
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_COMMANDS: Final = {
    "from toolsearch import ToolSearch": ("-c", "from toolsearch import ToolSearch"),
    "toolsearch --version": ("-m", "toolsearch", "--version"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both, smaller is better."""

    what: str
    unit: str
    old: float
    new: float


class Side:
    """A checkout, and a worker of it."""

    def __init__(
        self, checkout: Path, tools: Path, stack: ExitStack, threads: Mapping[str, str] = _AS_INSTALLED
    ) -> None:
        """*threads* are variables of its environment.

        Raises SystemExit if *checkout* is none, or cannot be run here.
        """
        self._environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        self._environment |= threads
        self._environment["PYTHONPATH"] = os.pathsep.join([str(checkout), str(checkout / "indexes")])
        has_daemon = (checkout / "toolsearch" / "gateway" / "daemon").is_dir()
        self._in_one_process = ["--no-daemon"] if has_daemon else []
        # -P: with no other folder in front, neither this one nor the current one
        self._worker = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-P", str(_WORKER), str(tools)],
                env=self._environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        found = self._answer()
        if not found or checkout not in Path(found).parents:
            raise SystemExit(f"{checkout} is no checkout of toolsearch that runs here; it was found at {found}")

    def ask(self, name: str, **arguments: Any) -> Taken:
        assert self._worker.stdin
        self._worker.stdin.write(json.dumps([name, arguments]) + "\n")
        self._worker.stdin.flush()
        answer: Taken = self._answer()
        return answer

    def run(self, *arguments: str) -> Taken:
        """What a Python of its own takes from its start to its end: CPU and wall milliseconds."""
        started = time.perf_counter_ns()
        process = subprocess.Popen([sys.executable, "-P", *arguments], env=self._environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, arguments
        return [[(used.ru_utime + used.ru_stime) * 1e3, (time.perf_counter_ns() - started) / 1e6]]

    def gateway(self, folder: Path) -> StdioGateway:
        """Started over some servers, with its state in *folder*."""
        folder.mkdir()
        server = {"command": sys.executable, "args": [str(_SERVER)]}
        servers = {f"server{number}": server for number in range(_SERVERS)}
        config = {"mcpServers": servers, "toolsearch": {"stateDir": str(folder)}}
        (folder / "mcp.json").write_text(json.dumps(config), "utf-8")
        program = [sys.executable, "-P", "-m", "toolsearch"]
        return StdioGateway(program, folder / "mcp.json", self._environment, self._in_one_process)

    def _answer(self) -> Any:
        assert self._worker.stdout
        line = self._worker.stdout.readline()
        return json.loads(line) if line else None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    few, many = options.sizes
    tools, source = tools_to_search(many)
    print(f"{len(tools):,} tools: {source}")
    with _sides([options.old, options.new], tools) as (*sides, alone):
        rows = [
            *_figures(sides, alone, tools, few, many, options.rounds),
            *_starts(sides, options.rounds),
            *_gateways(sides, options.rounds),
        ]
    _print(rows)
    if options.json:
        write_figures(options.json, "speed_paired", list(map(asdict, rows)))
    return 0


def tools_to_search(count: int) -> tuple[list[ToolDefinition], str]:
    """So many tools, and what they are: the real ones where they are installed, else of what is at hand."""
    try:
        return real_catalogue(count), "of AWS, Google and GitHub"
    except SourceError:
        originals = [document for folder in set_folders(SETS) for document in _documents_of(folder)]
        if not originals:
            return list(map(_definition, synthetic_documents(count))), "made up"
        some_more = map(_definition, varied_documents(count + count // 10, originals))  # some come to the same name
        varied = {tool.name: tool for tool in some_more}
        return evenly(list(varied.values()), count), "of the labelled sets, varied"


def _documents_of(folder: Path) -> Iterable[ToolDocument]:
    for line in (folder / "tools.jsonl").read_text("utf-8").splitlines():
        tool = json.loads(line)
        name = f"{folder.name}__{tool['id']}"
        schema = tool["input_schema"]
        yield document_of(ToolDefinition(name, tool["description"], schema, server=folder.name))


def _definition(document: ToolDocument) -> ToolDefinition:
    names, said = document.parameter_names, document.parameter_text.split("\n")
    properties = {
        parameter: {"description": text} for parameter, text in zip_longest(names, said[: len(names)], fillvalue="")
    }
    schema = {"type": "object", "properties": properties}
    name = namespaced(document.server, document.own_name)
    return ToolDefinition(name, document.description, schema, server=document.server)


@contextmanager
def _sides(checkouts: Sequence[Path], tools: Sequence[ToolDefinition]) -> Generator[list[Side]]:
    """A side for each of *checkouts*, and the last of them once more, with one thread alone."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "tools.jsonl"
        fields = ("name", "description", "input_schema", "server")
        lines = [json.dumps({field: getattr(tool, field) for field in fields}) for tool in tools]
        file.write_text("\n".join(lines), "utf-8")
        last = checkouts[-1].resolve()
        sides = [Side(checkout.resolve(), file, stack) for checkout in checkouts]
        yield [*sides, Side(last, file, stack, _ONE_THREAD)]


def _figures(
    sides: Sequence[Side], alone: Side, tools: Sequence[ToolDefinition], few: int, many: int, rounds: int
) -> list[Row]:
    """What engines over *few* and over *many* tools take. *alone* is the last of *sides*, with one thread."""
    documents = [document_of(tool) for tool in tools[:few]]
    short = requests_for(documents)[:_QUERIES]
    long = [" ".join(f"{request}." for request in short[n : n + _SENTENCES]) for n in range(0, len(short), _SENTENCES)]

    def taken(what: str, times: int = rounds, of: Sequence[Side] = sides, **arguments: Any) -> list[Taken]:
        return _by_turns(of, times, lambda side: side.ask(what, **arguments))

    def searched(tools: int, strategy: str, queries: Sequence[str], of: Sequence[Side] = sides) -> list[Taken]:
        taken("search", 1, of, tools=tools, strategy=strategy, queries=queries)  # what runs has met most words before
        return taken("search", of=of, tools=tools, strategy=strategy, queries=queries)

    built = taken("build", tools=few)
    keyword, hybrid = searched(few, "keyword", short), searched(few, "hybrid", short)
    with busy_processes(1):
        beside = searched(few, "hybrid", short)
        alone.ask("build", tools=few)
        beside_alone = searched(few, "hybrid", short, [alone, sides[-1]])
    sentences = searched(few, "hybrid", long)
    built_many = taken("build", 1, tools=many)
    hybrid_many = searched(many, "hybrid", short)
    changed = taken("change", tools=many, queries=short[:_SLOW])
    memory = taken("memory", 1)
    bm25 = _bm25_cpu_ms(documents, short[:_SLOW])
    at = f"{few:,} tools"
    return [
        _row(f"hybrid, {at}: CPU", "ms", hybrid, _cpu),
        *_walls(f"hybrid, {at}: wall, alone", hybrid),
        *_walls(f"hybrid, {at}: wall, beside a busy process", beside),
        *_walls(f"hybrid, {at}: wall, beside it, against one thread alone", beside_alone),
        _row(f"hybrid, {many:,} tools: CPU", "ms", hybrid_many, _cpu),
        _row(f"keyword, {at}: CPU", "ms", keyword, _cpu),
        _row(f"keyword, {at}: CPU, in rank-bm25's", "%", keyword, lambda taken: 100 * _cpu(taken) / bm25),
        _row(f"hybrid, {at}, {_SENTENCES} sentences: CPU", "ms", sentences, _cpu),
        _row(f"change one of {many:,} tools, search: CPU", "ms", changed, _cpu),
        _row(f"index {at}: CPU", "ms", built, _cpu),
        _row(f"index {many:,} tools: CPU", "ms", built_many, _cpu),
        _row("memory, with both indexed", "MB", memory, lambda taken: taken[0][0]),
        _row("memory, at its peak", "MB", memory, lambda taken: taken[0][1]),
    ]


def _starts(sides: Sequence[Side], rounds: int) -> list[Row]:
    """What programs take from start to end."""
    rows: list[Row] = []
    for what, command in _COMMANDS.items():
        taken = _by_turns(sides, rounds, lambda side, command=command: side.run(*command))  # type: ignore[misc]
        rows += [_row(f"{what}: CPU", "ms", taken, _cpu), _row(f"{what}: wall", "ms", taken, _wall)]
    return rows


def _gateways(sides: Sequence[Side], rounds: int) -> list[Row]:
    """What gateways over stdio take once they have found a tool, which is then called."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        gateways = [stack.enter_context(side.gateway(Path(folder) / f"{n}")) for n, side in enumerate(sides)]
        tools = dict(zip(gateways, map(_found, gateways), strict=True))
        calls = _by_turns(gateways, rounds, lambda gateway: [_called(gateway, tools[gateway]) for _ in range(_CALLS)])
        kib = [[[float(part) for part in gateway.resident_kib()]] for gateway in gateways]
    what = f"gateway, {_SERVERS} servers"
    return [
        _row(f"{what}, a call: CPU", "ms", calls, _cpu),
        _row(f"{what}, a call: wall", "ms", calls, _wall),
        _row(f"{what}: memory", "MB", kib, lambda taken: sum(taken[0]) / 1024),
        _row(f"{what}: memory, its own", "MB", kib, lambda taken: taken[0][0] / 1024),
    ]


def _found(gateway: StdioGateway) -> str:
    """The name of a tool that a search has found. The first search waits for the lists of the servers."""
    gateway.shake_hands()
    until_s = time.monotonic() + _UNTIL_LISTED_S
    while time.monotonic() < until_s:
        found = gateway.call("toolSearchTool", {"query": "echo a message about mail"})["structuredContent"]["tools"]
        if found:
            gateway.ask("tools/list", {})  # as a client does that is told that its list has changed
            return str(found[0]["name"])
    raise SystemExit("a gateway does not find the tools of its servers")


def _called(gateway: StdioGateway, tool: str) -> list[float]:
    cpu_ms, started_ns = gateway.cpu_ms(), time.perf_counter_ns()
    gateway.call(tool, {"message": f"hello there, it is now {started_ns}"})  # no message comes twice
    return [gateway.cpu_ms() - cpu_ms, (time.perf_counter_ns() - started_ns) / 1e6]


def _by_turns(sides: Sequence[_Side], times: int, ask: Callable[[_Side], Taken]) -> list[Taken]:
    """What each side takes in all of its turns; the one that begins changes."""
    taken: dict[_Side, Taken] = {side: [] for side in sides}
    for turn in range(times):
        for side in sides if turn % 2 else reversed(sides):
            taken[side] += ask(side)
    return [taken[side] for side in sides]


def _bm25_cpu_ms(documents: Sequence[ToolDocument], queries: Sequence[str]) -> float:
    """What rank-bm25 takes for a query."""
    bm25 = RankBm25([each.name for each in documents], list(map(all_text, documents)), prepared_words)
    taken: list[float] = []
    for query in queries:
        started = time.process_time_ns()
        bm25.search(query, 5)
        taken.append((time.process_time_ns() - started) / 1e6)
    return float(np.median(taken))


def _cpu(taken: Taken) -> float:
    return float(np.median([cpu for cpu, _ in taken]))


def _wall(taken: Taken) -> float:
    return float(np.median([wall for _, wall in taken]))


def _row(what: str, unit: str, taken: Sequence[Taken], figure: Callable[[Taken], float]) -> Row:
    old, new = map(figure, taken)
    return Row(what, unit, round(old, 3), round(new, 3))


def _walls(what: str, taken: Sequence[Taken]) -> list[Row]:
    return [
        _row(f"{what}, median", "ms", taken, _wall),
        _row(f"{what}, p95", "ms", taken, lambda each: float(np.percentile([wall for _, wall in each], 95))),
    ]


def _print(rows: Iterable[Row]) -> None:
    cells = [(row.what, row.unit, f"{row.old:,.2f}", f"{row.new:,.2f}", f"{row.new / row.old:.2f}") for row in rows]
    print_table(("what", "in", "old", "new", "new / old"), cells)


def _parser() -> argparse.ArgumentParser:
    def sizes(text: str) -> list[int]:
        few, many = map(int, text.split(","))
        return [few, many]

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed_paired", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("--sizes", type=sizes, default=[10_000, 36_900], help="a few tools, and many, by comma")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
