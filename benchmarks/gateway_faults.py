"""What faults of one server cost: lost calls, wrong errors, the time to recovery, and what its neighbour notices.

python -m benchmarks.gateway_faults [--injections 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.fault_kit import Bench, HttpFault, Outcome, StdioFault, bench, is_true, recovered, until
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures

_IMPATIENT = {"callTimeoutS": 0.5, "connectTimeoutS": 2}
_QUIET_S = 3.0
COLUMNS = (
    *("fault", "injections", "calls sent", "lost", "wrong error"),
    *("recovery", "neighbour lost", "its calls before", "its calls during"),
)

Server: TypeAlias = StdioFault | HttpFault
Injected: TypeAlias = list[tuple[str, Outcome]]  # the calls that were sent meanwhile, and what was told of them
Inject: TypeAlias = Callable[[Any, Bench, str], AbstractAsyncContextManager[Injected]]


@dataclass(frozen=True)
class Row:
    """Times in milliseconds. *sent* counts the calls while the fault lasted, *lost* those of them without an answer."""

    fault: str
    injections: int
    sent: int
    lost: int
    wrong_errors: int
    recovery_p50_ms: float
    recovery_p99_ms: float
    neighbour_calls: int
    neighbour_lost: int
    before_p50_ms: float
    before_p99_ms: float
    during_p50_ms: float
    during_p99_ms: float


@asynccontextmanager
async def killed(server: StdioFault, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
    server.mode = "hang"
    lost = asyncio.create_task(gateway.work(name))
    await server.running(name)
    server.mode = "ok"
    server.kill()
    yield [(name, (await lost)[0])]


def in_mode(mode: str, **headers: str) -> Inject:
    """Two calls at once while the server is in *mode*."""

    @asynccontextmanager
    async def inject(server: Server, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
        if isinstance(server, HttpFault):
            server.headers = {key.replace("_", "-"): value for key, value in headers.items()}
        server.mode = mode
        names = [f"{name}a", f"{name}b"]
        outcomes = await asyncio.gather(*map(gateway.work, names))
        server.mode = "ok"
        yield list(zip(names, (outcome for outcome, _ in outcomes), strict=True))

    return inject


@asynccontextmanager
async def hanging_start(server: StdioFault, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
    server.mode = "silent"
    pid = server.pids[-1]
    server.kill()
    await until(lambda: len(server.pids) > 1 and server.pids[-1] != pid)
    outcome, _ = await gateway.work(name)
    server.mode = "ok"
    yield [(name, outcome)]


@asynccontextmanager
async def refused(server: HttpFault, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
    await server.stop()
    outcome, _ = await gateway.work(name)
    await server.start()
    yield [(name, outcome)]


@asynccontextmanager
async def expired(server: HttpFault, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
    server.sessions.clear()
    names = [f"{name}a", f"{name}b"]
    outcomes = await asyncio.gather(*map(gateway.work, names))
    yield list(zip(names, (outcome for outcome, _ in outcomes), strict=True))


def listed_in_mode(mode: str) -> Inject:
    """A listing while the server is in *mode*, and a call beside it."""

    @asynccontextmanager
    async def inject(server: StdioFault, gateway: Bench, name: str) -> AsyncGenerator[Injected]:
        server.mode = mode
        listing = asyncio.create_task(gateway.gateway.upstreams["faulty"].relist())
        outcome, _ = await gateway.work(name)
        await listing
        server.mode = "ok"
        yield [(name, outcome)]

    return inject


FAULTS: dict[str, tuple[type[StdioFault | HttpFault], Inject, int]] = {  # at most so many injections
    "kill -9 in a call": (StdioFault, killed, 1_000),
    "hang on connect": (StdioFault, hanging_start, 5),
    "hang in a call": (StdioFault, in_mode("hang"), 1_000),
    "junk on stdout": (StdioFault, in_mode("junk"), 1_000),
    "line without end": (StdioFault, in_mode("line-flood"), 5),
    "flood": (StdioFault, in_mode("flood"), 5),
    "refused connection": (HttpFault, refused, 1_000),
    "401": (HttpFault, in_mode("401", WWW_Authenticate="Bearer"), 1_000),
    "429, come in 0.5 s": (HttpFault, in_mode("429", Retry_After="0.5"), 1_000),
    "503": (HttpFault, in_mode("503"), 1_000),
    "503 after it ran": (HttpFault, in_mode("after"), 1_000),
    "expired session": (HttpFault, expired, 1_000),
    "slow listing": (StdioFault, listed_in_mode("slow-list"), 5),
    "10,000 tools in circles": (StdioFault, listed_in_mode("pages"), 3),
    "bad schemas, same names": (StdioFault, listed_in_mode("bad"), 1_000),
    "changed definitions": (StdioFault, listed_in_mode("changed"), 1_000),
}


async def measure(fault: str, injections: int, folder: Path) -> Row:
    kind, inject, most = FAULTS[fault]
    server = HttpFault() if kind is HttpFault else StdioFault(folder / "faulty")
    if isinstance(server, HttpFault):
        await server.start()
    sent: Injected = []
    recoveries_s: list[float] = []
    lists = "listing" in fault or "tools" in fault
    async with bench(server.entry, folder, treated={} if lists else _IMPATIENT) as gateway:
        await gateway.work("first")
        gateway.steady.latencies_s.clear()
        await asyncio.sleep(_QUIET_S)
        quiet_s = sorted(gateway.steady.latencies_s)
        gateway.steady.latencies_s.clear()
        for number in range(min(injections, most)):
            async with inject(server, gateway, f"call{number}") as outcomes:
                begun_s = time.perf_counter()
                await recovered(gateway, f"again{number}")
                recoveries_s.append(time.perf_counter() - begun_s)
            sent += outcomes
        noisy_s = sorted(gateway.steady.latencies_s)
        neighbour = gateway.steady
    runs: Counter[str] = server.runs
    if isinstance(server, HttpFault):
        await server.stop()
    recoveries_s.sort()
    return Row(
        fault,
        len(recoveries_s),
        sent=len(sent),
        lost=sum(outcome != "done" for _, outcome in sent),
        wrong_errors=sum(not is_true(outcome, runs[name]) for name, outcome in sent),
        recovery_p50_ms=_percentile_ms(recoveries_s, 0.5),
        recovery_p99_ms=_percentile_ms(recoveries_s, 0.99),
        neighbour_calls=neighbour.sent,
        neighbour_lost=len(neighbour.lost),
        before_p50_ms=_percentile_ms(quiet_s, 0.5),
        before_p99_ms=_percentile_ms(quiet_s, 0.99),
        during_p50_ms=_percentile_ms(noisy_s, 0.5),
        during_p99_ms=_percentile_ms(noisy_s, 0.99),
    )


def cells(row: Row) -> list[str]:
    return [
        *(row.fault, f"{row.injections}", f"{row.sent}", f"{row.lost}", f"{row.wrong_errors}"),
        f"{row.recovery_p50_ms:,.0f} / {row.recovery_p99_ms:,.0f}",
        f"{row.neighbour_lost} of {row.neighbour_calls}",
        f"{row.before_p50_ms:,.0f} / {row.before_p99_ms:,.0f}",
        f"{row.during_p50_ms:,.0f} / {row.during_p99_ms:,.0f}",
    ]


def _percentile_ms(ordered_s: list[float], share: float) -> float:
    if not ordered_s:
        return float("nan")
    return round(1_000 * ordered_s[min(int(share * len(ordered_s)), len(ordered_s) - 1)], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--injections", type=int, default=20)
    parser.add_argument("--only", help="faults whose name holds this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.disable()
    rows: list[Row] = []
    for fault in FAULTS:
        if options.only and options.only not in fault:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = asyncio.run(measure(fault, options.injections, Path(folder)))
        rows.append(row)
        print(f"{fault}: {row.lost} of {row.sent} calls lost", flush=True)
    print_table(COLUMNS, list(map(cells, rows)), title="Times in milliseconds, p50 / p99")
    if options.json:
        write_figures(options.json, "gateway_faults", [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
