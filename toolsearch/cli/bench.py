"""``toolsearch bench``: what tool search saves, how good and how fast it is, on one's own tools."""

from __future__ import annotations

from toolsearch.cli.bench_savings import savings
from toolsearch.cli.bench_speed import speed
from toolsearch.cli.command_line import CommandLine
from toolsearch.cli.evaluate import evaluate
from toolsearch.cli.verbosity import with_verbosity

bench = CommandLine(
    no_args_is_help=True, help="Measure on your own tools: what tool search saves, how good and how fast it is."
)
bench.command()(with_verbosity(savings))
bench.command("quality")(with_verbosity(evaluate))
bench.command()(with_verbosity(speed))
