"""``toolsearch bench``: the savings, the quality and the speed of tool search on your own tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from toolsearch.cli.command_line import CommandLine, ExitCode, with_verbosity
from toolsearch.cli.evaluate import evaluate
from toolsearch.cli.opening import opened_catalog
from toolsearch.cli.options import (
    DEFAULT_MODELS,
    EncoderOption,
    IndexOption,
    JsonFileOption,
    JsonOption,
    SeedOption,
    SettingsOption,
    SourcesArgument,
    StrategyOption,
    endpoint_of,
    model_formats,
    prices_for,
    progress_on_stderr,
)
from toolsearch.cli.output import legible, line, print_json, put_record, put_text, size, stdout, table
from toolsearch.errors import BadQueryError, BadSettingError

if TYPE_CHECKING:
    from toolsearch.bench.conversations import Dialogue
    from toolsearch.bench.reports import Report, ReportTable
    from toolsearch.bench.speed import Speed
    from toolsearch.bench.study import OpenEngine, Study, StudyOptions
    from toolsearch.bench.ways import CannedOptions
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.engine import ToolSearch
    from toolsearch.settings import Settings
    from toolsearch.tools.definition import ToolDefinition


def put_reports(
    study: Study, *, as_json: bool, json_to: Path | None, markdown_to: str | None, html_to: Path | None
) -> None:
    """Write reports to each file that is named. Stdout gets a report for people, or JSON, or with ``-`` Markdown."""
    from toolsearch.bench.report_page import as_html, plots_of
    from toolsearch.bench.reports import as_json as record_of
    from toolsearch.bench.reports import as_markdown, report_of

    report = report_of(study)
    if html_to is not None:
        html_to.write_text(as_html(report, plots_of(study)), encoding="utf-8")
    if markdown_to is not None:
        put_text(markdown_to, as_markdown(report))
    is_shown = markdown_to != "-"
    put_record(
        lambda: record_of(study), lambda: _show_report(report) if is_shown else None, as_json=as_json, to=json_to
    )


def _show_report(report: Report) -> None:
    console = stdout()
    console.print(Text(legible(report.title), style="bold"))
    for each in report.tables:
        console.print()
        console.print(legible(each.title))
        console.print(_table(each))
        for note in each.notes:
            console.print(legible(note))
    console.print()
    console.print(Text(legible(report.verdict), style="bold"))
    for heading, sentences in report.facts:
        console.print()
        console.print(Text(legible(heading), style="bold"))
        for sentence in sentences:
            console.print(legible(sentence))


def _table(report: ReportTable) -> object:
    columns = [column.replace(" ", "\n") for column in report.columns]  # the table fits into 80 columns
    shown = table("", columns, numbers=columns[1:])
    for first, *others in report.rows:
        shown.add_row(line(first, "cyan"), *map(line, others))
    return shown


_PRESET: Final = "assistant"
_COUNT: Final = 20
_MOST_REASONS: Final = 3


def savings(
    sources: SourcesArgument = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    wire_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"The model's API: {', '.join(DEFAULT_MODELS)}.",
            autocompletion=model_formats,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Default: {', '.join(DEFAULT_MODELS.values())}, by the format.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Made-up conversations: question (1 turn), assistant (8), agent (5, of five tools each) or long (30). "
            f"Default: {_PRESET}.",
        ),
    ] = None,
    conversations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead, your own log: requests or messages of Anthropic's or OpenAI's APIs, as JSON or JSON lines.",
        ),
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help=f"Conversations of a preset. Default: {_COUNT}.")] = None,
    seed: SeedOption = 0,
    encoder: EncoderOption = None,
    strategy: StrategyOption = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Your own prices, in dollars for a million tokens: input=3,output=15,cache_read=0.3,cache_write=3.75.",
        ),
    ] = None,
    growth: Annotated[
        bool, typer.Option("--growth/--no-growth", help="Count smaller catalogs of these tools as well.")
    ] = True,
    as_json: JsonOption = False,
    json_to: JsonFileOption = None,
    markdown_to: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE", help="Write the report as Markdown; - prints just that.")
    ] = None,
    html_to: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one page with curves.")
    ] = None,
) -> int:
    """Count the cost of conversations with and without tool search, and say whether tool search pays.

    It counts every request of the loop: searches, answers, further rounds and the conversation so far, with and
    without a prompt cache. It asks no model and calls no tool.
    """
    from toolsearch.bench.study import StudyOptions

    if as_json and markdown_to == "-":
        raise BadSettingError("--json and --markdown - cannot both be printed; name a file by --json-to or --markdown")
    if conversations is not None and (preset is not None or count is not None):
        raise BadSettingError("--preset and --count are for made-up conversations; --conversations brings its own")
    endpoint = endpoint_of(wire_format, model)
    options = StudyOptions(endpoint, prices_for(endpoint, prices), grows=growth, seed=seed)
    indexed = {"index__encoder": encoder, "index__strategy": strategy}
    with opened_catalog(sources, index, settings, **indexed) as (catalog, chosen):
        definitions = [tool.definition for tool in catalog]
        if conversations is not None:
            played, notes = _of_log(conversations, definitions, seed)
        else:
            played, notes = _of_preset(preset or _PRESET, definitions, count or _COUNT, seed)
        result = _studied(catalog, played, options, _opener(chosen, notes))
    noted = replace(result, notes=tuple(dict.fromkeys(notes)))
    put_reports(noted, as_json=as_json, json_to=json_to, markdown_to=markdown_to, html_to=html_to)
    return ExitCode.OK


def _of_preset(
    name: str, definitions: Sequence[ToolDefinition], count: int, seed: int
) -> tuple[Sequence[Dialogue], list[str]]:
    from toolsearch.bench.conversations import PRESETS, made_conversations
    from toolsearch.bench.reports import of_preset

    if name not in PRESETS:
        raise BadSettingError(f"--preset must be one of {', '.join(PRESETS)}, not {name!r:.80}")
    made = made_conversations(definitions, PRESETS[name], count, seed=seed)
    return made, of_preset(name, count=count, seed=seed)


def _of_log(path: Path, definitions: Sequence[ToolDefinition], seed: int) -> tuple[Sequence[Dialogue], list[str]]:
    from toolsearch.bench.logs import logged, read_transcript
    from toolsearch.bench.reports import of_log

    transcript = read_transcript(path.read_text(encoding="utf-8", errors="replace"))
    log = logged(transcript.conversations, definitions, seed=seed)
    if not log.conversations:
        reasons = "; ".join(f"{skipped.place}: {skipped.why}" for skipped in transcript.skipped[:_MOST_REASONS])
        raise BadQueryError(f"{path} holds no conversation that can be read{reasons and f' ({reasons})'}")
    return log.conversations, of_log(path.name, log, transcript.skipped)


def _studied(
    catalog: Catalog, conversations: Sequence[Dialogue], options: StudyOptions, open_engine: OpenEngine
) -> Study:
    from toolsearch.bench.study import study
    from toolsearch.tokens import default_counter

    with progress_on_stderr() as progress:
        work = study(
            catalog, conversations, options, open_engine=open_engine, counter=default_counter(), progress=progress
        )
        return asyncio.run(work)


def _opener(settings: Settings, notes: list[str]) -> OpenEngine:
    """Opens engines by *settings*. They share embedded texts, and their notes are added to *notes*."""
    from toolsearch.wiring import build_engine
    from toolsearch_indexes.vector_cache import VectorCache

    cache = VectorCache()

    def opened(catalog: Catalog, given: CannedOptions) -> ToolSearch:
        bounds = given["options"].pass_through
        searched = settings.model_copy(update={"pass_through": bounds})
        engine = build_engine(searched, catalog, manager=given["manager"], clock=given["clock"], cache=cache)
        notes.extend(engine.notes)
        return engine

    return opened


def speed(
    sources: SourcesArgument = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    searches: Annotated[int, typer.Option(min=1, help="Searches by each strategy.")] = 200,
    seed: SeedOption = 0,
    encoder: EncoderOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Measure the CPU time of searches and of building the index, and the index's memory.

    It makes queries from the tools' own words, and builds the index anew in memory.
    """
    from toolsearch.bench.speed import measure_speed
    from toolsearch.wiring import build_engine

    indexed = {"index__encoder": encoder, "index__strategy": strategy}
    with opened_catalog(sources, index, settings, **indexed) as (catalog, chosen), progress_on_stderr() as progress:
        measured = measure_speed(lambda: build_engine(chosen, catalog), searches=searches, seed=seed, progress=progress)
    if as_json:
        print_json(asdict(measured))
    else:
        _show_speed(measured)
    return ExitCode.OK


def _show_speed(measured: Speed) -> None:
    columns = ("strategy", "searches", "median ms", "p99 ms")
    shown = table("CPU time of a search", columns, numbers=columns[1:])
    for row in measured.strategies:
        shown.add_row(row.strategy, f"{row.searches:,}", f"{row.median_ms:.3f}", f"{row.p99_ms:.3f}")
    stdout().print(shown)
    held = "" if measured.index_bytes is None else f", and takes about {size(measured.index_bytes)} of memory"
    stdout().print(f"The index of {measured.tools:,} tools was built in {measured.build_ms:,.0f} ms of CPU time{held}.")


bench = CommandLine(
    no_args_is_help=True, help="Measure tool search on your own tools: what it saves, how good and how fast it is."
)


bench.command()(with_verbosity(savings))


bench.command("quality")(with_verbosity(evaluate))


bench.command()(with_verbosity(speed))
