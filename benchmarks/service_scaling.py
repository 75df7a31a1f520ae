"""What would many replicas do? A simulation from the service times that `benchmarks.service_load` has measured.

    python -m benchmarks.service_scaling [--replicas 1000] [--json FILE]

Tenants with catalogs of different sizes ask by rates after Zipf's law. A balancer sends each request to a replica: a
server with one processor, a queue and a budget of memory for indexes, the least recently used one out first. Whoever
asks for a catalog that is not in memory waits for its opening, and holds up the replica for that time.

The memory begins as it would be after long use: those indexes are in it that were used last, and when each was used
last is drawn from the rate of its tenant. One seed gives one result.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure_tables import cells_of, print_table
from benchmarks.results import read_figures, write_figures
from toolsearch.storage.postgres.database import MAX_CONNECTIONS

_FIGURES: Final = Path(__file__).parent / "figures" / "service_stores.json"
_LEAST_POOL: Final = 1  # connections that a replica keeps, beside the one that listens
_TENANTS_EACH: Final = 20  # of a replica
_POINTS: Final = 64  # of each replica on the ring
_BANDS: Final = 12  # of tenants by their rates, for how the memory begins

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ring: TypeAlias = tuple[Sequence[int], int]  # replicas of a tenant in order, and how many of them it has a choice of


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured over PostgreSQL, by the number of tools where it depends on that."""

    tools: tuple[int, ...]
    search_s: tuple[float, ...]  # processor of the replica
    opening_s: tuple[float, ...]
    index_bytes: tuple[float, ...]
    session_s: float  # opening one, with a search in it
    search_store_s: float  # processor of PostgreSQL
    session_store_s: float
    search_transactions: float
    session_transactions: float

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Costs:
        """From the JSON of `benchmarks.service_load`."""
        loads = [each for each in figures["loads"] if (each["store"], each["replicas"]) == ("postgres", 1)]
        searches = sorted((each for each in loads if each["clients"] > 1), key=lambda each: each["tools"])
        openings = sorted(
            (each for each in figures["openings"] if each["store"] == "postgres"), key=lambda each: each["tools"]
        )
        [*_, session] = [each for each in figures["memory"] if each["store"] == "postgres"]
        return cls(
            tools=tuple(each["tools"] for each in searches),
            search_s=tuple(each["cpu_ms"] / 1_000 for each in searches),
            opening_s=tuple(each["warm_s"] for each in openings),
            index_bytes=tuple(each["index_mib"] * 2**20 for each in openings),
            session_s=session["cpu_ms"] / 1_000,
            search_store_s=float(np.mean([each["store_cpu_ms"] for each in searches])) / 1_000,
            session_store_s=session["store_cpu_ms"] / 1_000,
            search_transactions=float(np.mean([each["transactions"] for each in searches])),
            session_transactions=session["transactions"],
        )

    def of_size(self, tools: Ints, measured: Sequence[float], at_none: float | None = None) -> Floats:
        """What was *measured*, between the measured sizes; *at_none* of an empty catalog, if that is known."""
        sizes, values = [*self.tools], [*measured]
        if at_none is not None:
            sizes, values = [0, *sizes], [at_none, *values]
        return np.interp(tools, sizes, values)


@dataclass(frozen=True, slots=True)
class World:
    """What is assumed of those who ask."""

    replicas: int = 1_000
    tenants: int = 20_000  # whose indexes take about half of all memory
    zipf: float = 1.0  # the exponent of the rates
    most_per_s: float = 20_000.0  # of one tenant: 200 keys by 6,000 requests a minute, the default quota and rate
    utilisation: float = 0.5  # of all processors, without openings
    session_share: float = 0.05  # of requests that open a session
    sizes: tuple[tuple[int, float], ...] = ((100, 0.5), (1_000, 0.35), (10_000, 0.13), (36_900, 0.02))
    budget_bytes: float = 2.0**30  # memory.index_bytes
    warm_up_s: float = 0.4
    measured_s: float = 1.2
    seed: int = 14


@dataclass(frozen=True, slots=True)
class Policy:
    """How the balancer chooses: of the first *choices* replicas of a tenant that have room, the least busy one.

    share    a tenant that needs more of a processor than that gets one replica for each such share; None: *choices*
    bound    a replica has room while it has at most so many times the average of requests; None: always
    is_free  no tenant has replicas of its own: the choices are drawn for each request
    """

    name: str
    choices: int = 1
    share: float | None = None
    bound: float | None = None
    is_free: bool = False
    failing: float = 0.0  # the share of replicas that end in the middle of what is measured


BY_LOAD: Final = "by load, bound 8"
POLICIES: Final = (
    Policy("any two", choices=2, is_free=True),
    Policy("one"),
    Policy("one, bound 1.5", bound=1.5),
    Policy("one, bound 8", bound=8),
    Policy("two, bound 8", choices=2, bound=8),
    Policy("four, bound 8", choices=4, bound=8),
    Policy(BY_LOAD, share=0.25, bound=8),
    Policy("by load, bound 8, 2 % fail", share=0.25, bound=8, failing=0.02),
)


@dataclass(frozen=True, slots=True)
class Population:
    """By tenant: requests a second, and what its catalog costs."""

    rates: Floats
    search_s: Floats
    load: Floats  # processors that it needs
    opening_s: Floats
    index_bytes: Floats


@dataclass(frozen=True, slots=True)
class Requests:
    """In the order in which they come."""

    at_s: Floats
    tenants: Ints
    service_s: Floats


@dataclass(slots=True)
class Outcome:
    """What one run gave, of the time that is measured."""

    latencies_s: list[float] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    openings: int = 0
    evictions: int = 0
    resent: int = 0
    opened: list[int] = field(default_factory=list)  # tenants
    busy_s: list[float] = field(default_factory=list)  # of each replica, the work that it was given


def population(world: World, costs: Costs) -> Population:
    drawn = np.random.default_rng(world.seed)
    sizes, shares = zip(*world.sizes, strict=True)
    tools = drawn.choice(np.array(sizes, dtype=np.int64), size=world.tenants, p=shares)
    search_s = costs.of_size(tools, costs.search_s)
    weights = np.arange(1, world.tenants + 1, dtype=np.float64) ** -world.zipf
    mean_s = search_s * (1 - world.session_share) + costs.session_s * world.session_share
    rates = _bounded(weights, mean_s, world)
    return Population(
        rates,
        search_s,
        rates * mean_s,
        costs.of_size(tools, costs.opening_s, at_none=0.0),
        costs.of_size(tools, costs.index_bytes, at_none=0.0),
    )


def _bounded(weights: Floats, mean_s: Floats, world: World) -> Floats:
    """Rates by *weights* that keep the processors as busy as is assumed, none above what a tenant may ask."""
    wanted = world.utilisation * world.replicas
    low, high = 0.0, wanted / float(mean_s @ weights) * 1_000
    for _ in range(100):
        scale = (low + high) / 2
        is_less = float(np.minimum(scale * weights, world.most_per_s) @ mean_s) < wanted
        low, high = (scale, high) if is_less else (low, scale)
    bounded: Floats = np.minimum(low * weights, world.most_per_s)
    return bounded


def requests(world: World, people: Population, session_s: float, seconds: float) -> Requests:
    """Poisson arrivals."""
    drawn = np.random.default_rng(world.seed + 1)
    total = float(people.rates.sum())
    at_s = np.cumsum(drawn.exponential(1 / total, size=int(total * seconds)))
    tenants = np.searchsorted(np.cumsum(people.rates) / total, drawn.random(len(at_s))).clip(max=len(people.rates) - 1)
    is_session = drawn.random(len(at_s)) < world.session_share
    return Requests(at_s, tenants, np.where(is_session, session_s, people.search_s[tenants]))


def rings(world: World, places: int) -> Ints:
    """For each tenant its first *places* replicas on the ring, by consistent hashing."""
    drawn = np.random.default_rng(world.seed + 2)
    points = drawn.random(world.replicas * _POINTS)
    owners = np.repeat(np.arange(world.replicas), _POINTS)[np.argsort(points)]
    begins = np.searchsorted(np.sort(points), drawn.random(world.tenants))
    found = np.empty((world.tenants, places), dtype=np.int64)
    ring: list[int] = owners.tolist()
    for tenant, begin in enumerate(begins.tolist()):
        chosen: dict[int, None] = {}
        place = begin
        while len(chosen) < places:
            chosen[ring[place % len(ring)]] = None
            place += 1
        found[tenant] = list(chosen)
    return found


class Cluster:
    """The replicas, as time goes on."""

    def __init__(self, world: World, people: Population, policy: Policy) -> None:
        self.outcome = Outcome(busy_s=[0.0] * world.replicas)
        self._policy = policy
        self._budget = world.budget_bytes
        self._opening_s: list[float] = people.opening_s.tolist()
        self._bytes: list[float] = people.index_bytes.tolist()
        self._free_s = [0.0] * world.replicas  # when each has done all that it was given
        self._running = [0] * world.replicas
        self._alive = [True] * world.replicas
        self._living = world.replicas
        self._memory: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(world.replicas)]
        self._used = [0.0] * world.replicas
        self._ends: list[tuple[float, int, int, float, float]] = []  # end, replica, tenant, arrival, service

    def remember(self, replica: int, tenants: Sequence[int]) -> None:
        """Put indexes into the memory of a replica, the most recently used one first, while they fit."""
        kept: list[int] = []
        for tenant in tenants:
            if self._used[replica] + self._bytes[tenant] > self._budget:
                break
            self._used[replica] += self._bytes[tenant]
            kept.append(tenant)
        self._memory[replica] = OrderedDict.fromkeys(reversed(kept))

    def tick(self, now_s: float) -> None:
        """Let what is done by *now_s* be done."""
        ends, running = self._ends, self._running
        while ends and ends[0][0] <= now_s:
            running[heapq.heappop(ends)[1]] -= 1

    def choose(self, places: Sequence[int], choices: int) -> int:
        """Return which of *places* it is: the least busy of the first *choices* that have room."""
        policy, running = self._policy, self._running
        room = math.inf
        if policy.bound is not None:
            room = math.ceil(policy.bound * (len(self._ends) + 1) / self._living)
        best, least, seen = -1, math.inf, 0
        for place, replica in enumerate(places):
            if not self._alive[replica] or running[replica] >= room:
                continue
            if running[replica] < least:
                best, least = place, running[replica]
            seen += 1
            if seen == choices:
                break
        if best >= 0:
            return best
        living = [place for place, replica in enumerate(places) if self._alive[replica]]
        return min(living, key=lambda place: (running[places[place]], place))

    def take(self, replica: int, tenant: int, now_s: float, arrival_s: float, service_s: float) -> None:
        """Give a request to a replica."""
        memory, outcome = self._memory[replica], self.outcome
        work_s = service_s
        if tenant in memory:
            memory.move_to_end(tenant)
        else:
            work_s += self._opening_s[tenant]
            self._open(replica, tenant)
        end_s = max(now_s, self._free_s[replica]) + work_s
        self._free_s[replica] = end_s
        self._running[replica] += 1
        heapq.heappush(self._ends, (end_s, replica, tenant, arrival_s, service_s))
        outcome.busy_s[replica] += work_s
        outcome.latencies_s.append(end_s - arrival_s)
        outcome.arrived_s.append(arrival_s)

    def _open(self, replica: int, tenant: int) -> None:
        memory = self._memory[replica]
        memory[tenant] = None
        self._used[replica] += self._bytes[tenant]
        self.outcome.openings += 1
        self.outcome.opened.append(tenant)
        while self._used[replica] > self._budget and len(memory) > 1:
            oldest, _ = memory.popitem(last=False)
            self._used[replica] -= self._bytes[oldest]
            self.outcome.evictions += 1

    def fail(self, replicas: Collection[int], rings: Sequence[Ring], now_s: float) -> None:
        """End *replicas*. What they had not answered is sent again, as a balancer does with what only reads."""
        dead = frozenset(replicas)
        for replica in dead:
            self._alive[replica] = False
            self._free_s[replica] = now_s
        self._living -= len(dead)
        lost = sorted(each for each in self._ends if each[1] in dead)
        self._ends = [each for each in self._ends if each[1] not in dead]
        heapq.heapify(self._ends)
        for _, _, tenant, arrival_s, service_s in lost:
            places, choices = rings[tenant]
            self.take(places[self.choose(places, choices)], tenant, now_s, arrival_s, service_s)
            self.outcome.resent += 1


def run(world: World, people: Population, asked: Requests, policy: Policy) -> Outcome:
    """One run, with the memory as it is after long use."""
    drawn = np.random.default_rng(world.seed + 3)
    cluster = Cluster(world, people, policy)
    if policy.is_free:
        _remember_all(cluster, world, people, drawn)
        return _drive(cluster, world, asked, policy, _Free(world, policy, drawn), drawn)
    choices = np.full(world.tenants, policy.choices)
    if policy.share is not None:
        choices = np.ceil(people.load / policy.share).astype(np.int64).clip(1, world.replicas)
    found = rings(world, min(world.replicas, int(choices.max()) + 8))
    places, bands = _Own(found, choices, _bands(people.rates)), _bands(people.rates)
    # Where requests go is tried out first, since that decides which indexes are where.
    trial, part = Cluster(world, people, policy), int(len(asked.at_s) * 0.4)
    _remember_by_place(trial, people, found, places.evenly()[bands], drawn)
    begin = Requests(asked.at_s[:part], asked.tenants[:part], asked.service_s[:part])
    _drive(trial, world, begin, replace(policy, failing=0.0), places, drawn)
    _remember_by_place(cluster, people, found, places.shares()[bands], drawn)
    return _drive(cluster, world, asked, policy, places, drawn)


class _Own:
    """Each tenant has places on the ring. It counts which of them are chosen."""

    def __init__(self, found: Ints, choices: Ints, bands: Ints) -> None:
        self.rings: list[Ring] = list(zip(found.tolist(), choices.tolist(), strict=True))
        self._choices = choices
        self._bands: list[int] = bands.tolist()
        self._counts = np.zeros((_BANDS, found.shape[1]), dtype=np.int64)

    def of(self, tenant: int) -> Ring:
        return self.rings[tenant]

    def chose(self, tenant: int, place: int) -> None:
        self._counts[self._bands[tenant], place] += 1

    def evenly(self) -> Floats:
        """By band, the share of each place, if each tenant asked its places in turn."""
        shares = np.zeros(self._counts.shape)
        for band in range(_BANDS):
            mine = self._choices[np.array(self._bands) == band]
            for count in mine.tolist():
                shares[band, :count] += 1 / count / len(mine)
        return shares

    def shares(self) -> Floats:
        """The same, as it was chosen."""
        shares: Floats = self._counts / self._counts.sum(axis=1, keepdims=True).clip(1)
        return shares


class _Free:
    """No tenant has places of its own."""

    rings: Sequence[Ring] = ()

    def __init__(self, world: World, policy: Policy, drawn: np.random.Generator) -> None:
        self._drawn = iter(drawn.integers(world.replicas, size=(1_000_000, policy.choices)).tolist())
        self._choices = policy.choices

    def of(self, tenant: int) -> Ring:  # noqa: ARG002
        return next(self._drawn), self._choices

    def chose(self, tenant: int, place: int) -> None:
        """Nothing is learnt from that."""


def _drive(
    cluster: Cluster, world: World, asked: Requests, policy: Policy, places: _Own | _Free, drawn: np.random.Generator
) -> Outcome:
    failing_s = world.warm_up_s + world.measured_s / 2 if policy.failing else math.inf
    is_measured = False
    for now_s, tenant, service_s in zip(
        asked.at_s.tolist(), asked.tenants.tolist(), asked.service_s.tolist(), strict=True
    ):
        cluster.tick(now_s)
        if not is_measured and now_s >= world.warm_up_s:
            is_measured, cluster.outcome = True, Outcome(busy_s=[0.0] * world.replicas)
        if now_s >= failing_s:
            ending = drawn.choice(world.replicas, size=round(world.replicas * policy.failing), replace=False)
            cluster.fail(ending.tolist(), places.rings, now_s)
            failing_s = math.inf
        ring, choices = places.of(tenant)
        place = cluster.choose(ring, choices)
        places.chose(tenant, place)
        cluster.take(ring[place], tenant, now_s, now_s, service_s)
    return cluster.outcome


def _bands(rates: Floats) -> Ints:
    """Tenants of similar rates."""
    logs = np.log(rates)
    width = max(float(logs.max() - logs.min()), 1e-9) / _BANDS
    bands: Ints = ((logs - logs.min()) / width).astype(np.int64).clip(max=_BANDS - 1)
    return bands


def _remember_by_place(
    cluster: Cluster, people: Population, places: Ints, shares: Floats, drawn: np.random.Generator
) -> None:
    """Fill the memories, where so large a share of a tenant's requests goes to each of its places."""
    rates = people.rates[:, None] * shares
    tenants, place = np.nonzero(rates > 0)
    ages = drawn.exponential(1.0, size=len(tenants)) / rates[tenants, place]
    replicas = places[tenants, place]
    order = np.lexsort((ages, replicas))
    for replica, group in _groups(replicas[order], tenants[order]):
        cluster.remember(replica, group)


def _groups(replicas: Ints, tenants: Ints) -> list[tuple[int, list[int]]]:
    if not len(replicas):
        return []
    starts = np.flatnonzero(np.diff(replicas, prepend=-1))
    parts = np.split(tenants, starts[1:])
    return [(int(replicas[start]), part.tolist()) for start, part in zip(starts, parts, strict=True)]


def _remember_all(cluster: Cluster, world: World, people: Population, drawn: np.random.Generator) -> None:
    """Fill the memories, where each replica gets the same share of all tenants."""
    most = min(world.tenants, 2 * int(world.budget_bytes / float(people.index_bytes.mean())) + 100)
    for replica in range(world.replicas):
        ages = drawn.exponential(1.0, size=world.tenants) / people.rates
        latest = np.argpartition(ages, most - 1)[:most]
        cluster.remember(replica, latest[np.argsort(ages[latest])].tolist())


# What is told


@dataclass(frozen=True, slots=True)
class Told:
    """Of one policy. Rates are for a second of all replicas together."""

    policy: str
    requests: int
    utilisation: float
    busiest: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    openings: int
    evictions: int
    store_transactions: int
    store_processors: float
    resent: int
    p99_after_failure_ms: float | None


def told(world: World, costs: Costs, policy: Policy, outcome: Outcome) -> Told:
    latencies_ms, seconds = np.array(outcome.latencies_s) * 1_000, world.measured_s
    busy, per_s = np.array(outcome.busy_s) / seconds, len(latencies_ms) / seconds
    sessions, openings = per_s * world.session_share, outcome.openings / seconds
    middle_s = world.warm_up_s + seconds / 2
    after = latencies_ms[np.array(outcome.arrived_s) >= middle_s]
    return Told(
        policy.name,
        requests=round(per_s),
        utilisation=round(float(busy.mean()), 3),
        busiest=round(float(busy.max()), 2),
        p50_ms=round(float(np.quantile(latencies_ms, 0.5)), 2),
        p99_ms=round(float(np.quantile(latencies_ms, 0.99)), 2),
        p999_ms=round(float(np.quantile(latencies_ms, 0.999)), 2),
        openings=round(openings),
        evictions=round(outcome.evictions / seconds),
        store_transactions=round(
            (per_s - sessions) * costs.search_transactions + sessions * costs.session_transactions + openings * 4
        ),
        store_processors=round((per_s - sessions) * costs.search_store_s + sessions * costs.session_store_s, 1),
        resent=outcome.resent,
        p99_after_failure_ms=round(float(np.quantile(after, 0.99)), 2) if policy.failing else None,
    )


def policy_row(each: Mapping[str, Any]) -> str:
    """A row of the page on scaling."""
    cells = (
        *(each["policy"], f"{each['utilisation']:.2f}", f"{each['busiest']:.2f}", f"{each['p50_ms']:,.1f}"),
        *(f"{each['p99_ms']:,.0f}", f"{each['openings']:,}", f"{each['evictions']:,}"),
    )
    return f"| {' | '.join(cells)} |"


def store_row(each: Mapping[str, Any], replicas: int) -> str:
    """A row of the page: what all replicas together ask of PostgreSQL."""
    cells = (
        *(f"{each['requests']:,}", f"{each['store_transactions']:,}", f"{each['store_processors']:,.0f}"),
        *(f"{each['openings']:,}", f"{replicas * (_LEAST_POOL + 1):,}", f"{replicas * (MAX_CONNECTIONS + 1):,}"),
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    costs = Costs.of(read_figures(_FIGURES))
    world = World(replicas=options.replicas, tenants=_TENANTS_EACH * options.replicas)
    figures = simulated(world, costs)
    columns = ("replicas of a tenant", "work, mean", "work, most", "p50 ms", "p99 ms", "openings/s", "evictions/s")
    print_table(columns, [cells_of(policy_row(each)) for each in figures["policies"]])
    if options.json:
        write_figures(options.json, "service_scaling", figures, seed=world.seed)
    return 0


def simulated(world: World, costs: Costs, policies: Sequence[Policy] = POLICIES) -> dict[str, Any]:
    people = population(world, costs)
    asked = requests(world, people, costs.session_s, world.warm_up_s + world.measured_s)
    rows = [told(world, costs, policy, run(world, people, asked, policy)) for policy in policies]
    return {
        "costs": asdict(costs),
        "world": asdict(world),
        "index_gib": round(float(people.index_bytes.sum()) / 2**30),
        "largest_tenant": round(float(people.rates[0] * people.search_s[0]), 1),
        "policies": [asdict(each) for each in rows],
    }


def tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the page on scaling tells of a simulation, by the names of its tables."""
    [by_load] = [each for each in figures["policies"] if each["policy"] == BY_LOAD]
    return {
        "simulated": [policy_row(each) for each in figures["policies"]],
        "store": [store_row(by_load, figures["world"]["replicas"])],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What many replicas would do.")
    parser.add_argument("--replicas", type=int, default=1_000)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
