"""The service's load test: what is told of it."""

from dataclasses import replace
from pathlib import Path

from benchmarks.figure_tables import filled
from benchmarks.service_load import Load, beside_constant, load_row, ratio

ROOT = Path(__file__).parents[2]


def load(what: str, tools: int, clients: int, p50_ms: float) -> Load:
    return Load(what, tools, clients, per_s=1_234.4, p50_ms=p50_ms, p99_ms=2_000.0, cpu_ms=0.5, engine_ms=0.25)


def test_the_ratio_is_of_one_client_in_the_smallest_catalogue():
    loads = [load("constant", 0, 1, 2.0), load("constant", 0, 50, 9.0), load("search", 10, 1, 7.0)]

    assert ratio([*loads, load("search", 10, 50, 99.0), load("search", 20, 1, 50.0)]) == 3.5


def test_a_search_is_compared_with_the_constant_for_as_many_clients():
    constants = [replace(load("constant", 0, clients, 1.0), cpu_ms=clients / 10, p99_ms=10.0) for clients in (1, 50)]
    searches = [replace(load("search", 10_000, 50, 1.0), cpu_ms=10.0, p99_ms=35.0), load("search", 10_000, 7, 1.0)]

    assert beside_constant([*constants, *searches]) == [["10,000", "50", "2.0", "3.5"]]


def test_a_row_has_what_was_measured():
    assert (
        load_row(load("search", 36_900, 50, 3.04)) == "| search | 36,900 | 50 | 1,234 | 3.0 | 2,000.0 | 0.50 | 0.25 |"
    )


def test_a_table_is_filled_where_its_name_stands_and_nothing_else_is_changed():
    page = "<!-- figures: one -->\n| a |\n|---|\n| old |\n| old |\n\ntext\n\n<!-- figures: two -->\n| b |\n|---|\n"

    assert filled(page, {"one": ["| 1 |"], "two": ["| 2 |", "| 3 |"]}) == (
        "<!-- figures: one -->\n| a |\n|---|\n| 1 |\n\ntext\n\n<!-- figures: two -->\n| b |\n|---|\n| 2 |\n| 3 |\n"
    )
