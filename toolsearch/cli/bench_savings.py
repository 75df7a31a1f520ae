"""``toolsearch bench savings``: what conversations over one's own tools cost, with tool search and without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolsearch.cli.bench_endpoint import DEFAULT_MODELS, endpoint_of, prices_for
from toolsearch.cli.bench_options import SeedOption, SourcesArgument, progress_on_stderr
from toolsearch.cli.bench_report import put_reports
from toolsearch.cli.completion import model_formats
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_catalog
from toolsearch.cli.options import (
    EncoderOption,
    IndexOption,
    JsonFileOption,
    JsonOption,
    SettingsOption,
    StrategyOption,
)
from toolsearch.errors import BadQueryError, BadSettingError

if TYPE_CHECKING:
    from toolsearch.bench.canned import CannedOptions
    from toolsearch.bench.study import OpenEngine, Study, StudyOptions
    from toolsearch.bench.workload import Conversation
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.engine import ToolSearch
    from toolsearch.settings import Settings
    from toolsearch.tools.definition import ToolDefinition

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
            help="Your own, in dollars for a million tokens: input=3,output=15,cache_read=0.3,cache_write=3.75.",
        ),
    ] = None,
    growth: Annotated[
        bool, typer.Option("--growth/--no-growth", help="Whether smaller catalogs of these tools are counted as well.")
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
    """Count what conversations cost in each way of giving a model these tools, and say whether tool search is worth it.

    Every request of the loop is counted: searches, answers, further rounds and all that was said before, with and
    without a prompt cache. No model is asked, and no tool is called.
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
) -> tuple[Sequence[Conversation], list[str]]:
    from toolsearch.bench.presets import PRESETS, made_conversations
    from toolsearch.bench.reports.notes import of_preset

    if name not in PRESETS:
        raise BadSettingError(f"--preset must be one of {', '.join(PRESETS)}, not {name!r:.80}")
    made = made_conversations(definitions, PRESETS[name], count, seed=seed)
    return made, of_preset(name, count=count, seed=seed)


def _of_log(path: Path, definitions: Sequence[ToolDefinition], seed: int) -> tuple[Sequence[Conversation], list[str]]:
    from toolsearch.bench.logged import logged
    from toolsearch.bench.reports.notes import of_log
    from toolsearch.bench.transcripts import read_transcript

    transcript = read_transcript(path.read_text(encoding="utf-8", errors="replace"))
    log = logged(transcript.conversations, definitions, seed=seed)
    if not log.conversations:
        reasons = "; ".join(f"{skipped.place}: {skipped.why}" for skipped in transcript.skipped[:_MOST_REASONS])
        raise BadQueryError(f"{path} holds no conversation that can be read{reasons and f' ({reasons})'}")
    return log.conversations, of_log(path.name, log, transcript.skipped)


def _studied(
    catalog: Catalog, conversations: Sequence[Conversation], options: StudyOptions, open_engine: OpenEngine
) -> Study:
    from toolsearch.bench.study import study
    from toolsearch.tokens import default_counter

    with progress_on_stderr() as progress:
        work = study(
            catalog, conversations, options, open_engine=open_engine, counter=default_counter(), progress=progress
        )
        return asyncio.run(work)


def _opener(settings: Settings, notes: list[str]) -> OpenEngine:
    """Engines as *settings* say, which share what is embedded; *notes* gets what they have to tell."""
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
