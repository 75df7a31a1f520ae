"""The gateway's load test: what it puts before the gateway, and how its figures are made."""

from collections import Counter

from benchmarks.gateway_load import Recorded, Sample, summary, tools_of


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
