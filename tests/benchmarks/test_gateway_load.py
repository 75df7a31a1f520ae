"""The gateway's load test: what it puts before the gateway, and how its figures are made."""

from collections import Counter
from pathlib import Path

from benchmarks.gateway_load import Recorded, Sample, summary, tools_of
from benchmarks.results import FIGURES, read_figures


def test_the_servers_have_a_thousand_tools_between_them_and_none_twice():
    names = [tool.name for number in range(5) for tool in tools_of(number)]

    assert len(names) == len(set(names)) == 1_000


def test_what_is_added_is_taken_turn_by_turn_and_growth_after_the_warm_up():
    recorded = Recorded(searches=[0.001], direct=[0.010, 0.100], proxied=[0.012, 0.103], lost=Counter(timeout=1))
    samples = [
        Sample(at_s=60.0 * n, rss_mib=mib, handles=n, threads=2) for n, mib in enumerate((50, 100, 101, 102, 103, 104))
    ]
    figures = summary(recorded, samples, Sample(360, 104, 1, 2))

    assert figures["added_ms"] == {"p50": 3.0, "p99": 3.0}
    assert figures["direct_ms"] == {"p50": 100.0, "p99": 100.0}
    assert figures["rss_mib"] == {"start": 50, "after_warm_up": 101, "end": 104, "slope_per_minute": 1.0}
    assert figures["handles"] == {"most": 5, "after_all_sessions": 1}
    assert figures["lost"] == {"timeout": 1}


def test_the_figures_that_are_told_are_those_that_were_stored():
    folder = Path(__file__).parents[2] / "benchmarks"
    told = " ".join((folder / "README.md").read_text("utf-8").split())
    figures = read_figures(FIGURES / "gateway_load.json")

    for what in ("search", "direct", "proxied", "added"):
        milliseconds = figures[f"{what}_ms"]
        assert f"| {what} | {milliseconds['p50']:,.1f} | {milliseconds['p99']:,.1f} |" in told
    counts = f"{figures['searches']:,} searches, {figures['calls']:,} calls, {sum(figures['lost'].values())} lost"
    memory = figures["rss_mib"]
    assert counts in told
    assert f"{memory['after_warm_up']:,.0f} MiB after the warm-up and {memory['end']:,.0f} at the end" in told
