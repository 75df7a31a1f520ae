"""The commands, put together. Nothing heavy is imported before a command needs it, so that ``--help`` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from toolsearch.cli.bench import bench
from toolsearch.cli.call import call
from toolsearch.cli.command_line import CommandLine
from toolsearch.cli.demo import demo
from toolsearch.cli.enrich import enrich
from toolsearch.cli.evaluate import evaluate
from toolsearch.cli.exits import HELP
from toolsearch.cli.gateway import gateway
from toolsearch.cli.index import index
from toolsearch.cli.search import search
from toolsearch.cli.serve import serve
from toolsearch.cli.show import show
from toolsearch.cli.sources import sources
from toolsearch.cli.tokens import tokens
from toolsearch.cli.upkeep import backup, keys, reseal, restore
from toolsearch.cli.usage import usage
from toolsearch.cli.verbosity import QuietOption, VerboseOption, apply, with_verbosity

app = CommandLine(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:  # noqa: FBT001  typer's way of calling
    if is_wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"toolsearch {version('toolsearch')}")
        except PackageNotFoundError:
            typer.echo("toolsearch, from a source tree that is not installed")
        raise typer.Exit


@app.callback()
def toolsearch(
    *,
    version: Annotated[  # noqa: ARG001  its callback does it
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
) -> None:
    """Put one small search tool in front of any number of tools.

    New here? 'toolsearch demo' shows what it does and needs nothing. Then: 'toolsearch index SOURCE...' and
    'toolsearch search "what the tool should do"'.
    """
    apply(quiet=quiet, verbose=verbose)


for command in (demo, index, search, show, call, sources, tokens, evaluate, enrich, backup, restore, reseal, keys):
    app.command()(with_verbosity(command))
app.command()(serve)  # which has options of its own for what it logs
app.add_typer(bench, name="bench")
app.add_typer(usage, name="usage")
app.add_typer(gateway, name="gateway")
