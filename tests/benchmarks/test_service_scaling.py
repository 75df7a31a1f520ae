"""The simulation of many replicas: against what is known in closed form, and what the page tells of it."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.results import FIGURES, read_figures
from benchmarks.service_scaling import (
    Cluster,
    Costs,
    Outcome,
    Policy,
    Population,
    Requests,
    World,
    population,
    requests,
    rings,
    run,
    simulated,
)

ROOT = Path(__file__).parents[2]
COSTS = Costs(
    tools=(1_000, 10_000),
    search_s=(0.002, 0.003),
    opening_s=(0.03, 0.2),
    index_bytes=(2.0**20, 10 * 2.0**20),
    session_s=0.006,
    search_store_s=0.0001,
    session_store_s=0.003,
    search_transactions=0.5,
    session_transactions=8.0,
)
SMALL = World(replicas=20, tenants=400, most_per_s=300, budget_bytes=2.0**30, warm_up_s=0.5, measured_s=1.0)


def one_queue(rate: float, service_s: np.ndarray, seed: int) -> np.ndarray:
    """The latencies at one replica with one tenant, whose index is in memory."""
    world = World(replicas=1, tenants=1, warm_up_s=0.0, seed=seed)
    people = Population(
        *(np.array([value]) for value in (rate, service_s.mean(), rate * service_s.mean(), 0.0, 1.0)),
    )
    at_s = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, len(service_s)))
    asked = Requests(at_s, np.zeros(len(at_s), dtype=np.int64), service_s)
    return np.array(run(world, people, asked, Policy("one")).latencies_s)


def test_a_queue_with_equal_services_waits_as_the_theory_of_m_d_1_says():
    """A load of 0.7 and services of 1 ms: 0.7 / (2 * 0.3) ms of waiting, and 1 ms of service."""
    latencies_s = one_queue(700, np.full(300_000, 0.001), seed=1)

    assert latencies_s.mean() * 1_000 == pytest.approx(1 + 0.7 / (2 * 0.3), rel=0.02)


def test_a_queue_with_exponential_services_is_as_slow_as_the_theory_of_m_m_1_says():
    """1,000 services and 700 requests a second: 1/300 s on average, and one in a hundred takes over ln(100)/300 s."""
    latencies_s = one_queue(700, np.random.default_rng(3).exponential(0.001, 300_000), seed=2)

    assert latencies_s.mean() == pytest.approx(1 / 300, rel=0.04)
    assert np.quantile(latencies_s, 0.99) == pytest.approx(math.log(100) / 300, rel=0.06)


def test_of_tenants_that_ask_alike_as_many_wait_for_an_opening_as_do_not_fit_into_memory():
    """40 of 100 indexes fit: each request finds its own with a probability of 0.4."""
    world = World(replicas=1, tenants=100, budget_bytes=40.0, warm_up_s=0.0)
    people = Population(*(np.full(100, value) for value in (10.0, 1e-6, 1e-5, 1e-6, 1.0)))
    asked = requests(world, people, session_s=1e-6, seconds=50)

    outcome = run(world, people, asked, Policy("one"))

    assert outcome.openings / len(asked.at_s) == pytest.approx(0.6, abs=0.01)
    assert outcome.evictions == outcome.openings


def test_the_replicas_are_given_the_work_that_is_assumed():
    people = population(SMALL, COSTS)
    asked = requests(SMALL, people, COSTS.session_s, SMALL.warm_up_s + SMALL.measured_s)

    outcome = run(SMALL, people, asked, Policy("one"))

    work_s = sum(outcome.busy_s) - sum(people.opening_s[tenant] for tenant in outcome.opened)
    assert work_s / SMALL.replicas == pytest.approx(SMALL.utilisation, rel=0.05)
    assert people.load.sum() == pytest.approx(SMALL.utilisation * SMALL.replicas)
    assert people.rates.max() <= SMALL.most_per_s


def test_one_seed_gives_one_result_and_another_one_another():
    policies = [Policy("by load", share=0.25, bound=8), Policy("any", choices=2, is_free=True)]

    first, again = (simulated(SMALL, COSTS, policies) for _ in range(2))

    assert first == again
    assert simulated(replace(SMALL, seed=1), COSTS, policies) != first


def test_a_tenant_moves_only_if_its_replica_is_one_that_went():
    """With nineteen of twenty replicas, the first nineteen have the points that they had."""
    world = replace(SMALL, seed=5)
    places = rings(world, 3)
    without_first = [[replica for replica in ring if replica != 7] for ring in places.tolist()]

    assert all(len(set(ring)) == 3 for ring in places.tolist())
    assert {len(ring) for ring in without_first} == {2, 3}
    assert np.bincount(places[:, 0], minlength=20).max() < 3 * 400 / 20


def test_what_a_replica_that_fails_has_not_answered_is_sent_to_another():
    people = population(SMALL, COSTS)
    policy = Policy("one")
    cluster = Cluster(SMALL, people, policy)
    cluster.outcome = Outcome(busy_s=[0.0] * SMALL.replicas)
    cluster.take(3, 0, now_s=0.0, arrival_s=0.0, service_s=1.0)
    cluster.take(4, 1, now_s=0.0, arrival_s=0.0, service_s=1.0)

    cluster.fail([3], [([3, 5], 1), ([4, 6], 1)], now_s=0.25)

    opening_s = people.opening_s[0]
    assert cluster.outcome.resent == 1
    assert cluster.outcome.latencies_s[-1] == pytest.approx(0.25 + opening_s + 1.0)
    assert cluster.outcome.busy_s[5] == pytest.approx(opening_s + 1.0)


def test_a_replica_without_room_is_passed_over():
    """Of four requests in twenty replicas the average is 0.2, so that with a bound of 8 there is room for two."""
    cluster = Cluster(SMALL, population(SMALL, COSTS), Policy("one", bound=8))
    for _ in range(4):
        cluster.take(3, 0, now_s=0.0, arrival_s=0.0, service_s=1.0)

    assert cluster.choose([3, 5], 1) == 1
    cluster.tick(100.0)
    assert cluster.choose([3, 5], 1) == 0


def test_what_is_stored_was_simulated_of_the_costs_that_are_stored():
    simulated_figures, measured = (
        read_figures(FIGURES / f"{name}.json") for name in ("service_scaling", "service_stores")
    )

    assert simulated_figures["costs"] == json.loads(json.dumps(asdict(Costs.of(measured))))
