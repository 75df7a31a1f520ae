"""``toolsearch enrich``: a model writes what users ask for into a file, which makes tools and skills easier to find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import opened_catalog
from toolsearch.cli.options import (
    DEFAULT_MODELS,
    AllowOption,
    DenyOption,
    IndexOption,
    JsonOption,
    SettingsOption,
    SourcesArgument,
    endpoint_of,
    model_formats,
    prices_for,
    progress_on_stderr,
)
from toolsearch.cli.output import line, print_json, stdout, table, tell, warn
from toolsearch.errors import BadSettingError, UnknownPriceError
from toolsearch.threads import run_sync

if TYPE_CHECKING:
    from toolsearch.access.reach import Reach
    from toolsearch.bench.prices import Prices
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.catalog.enrichment import Enrichment, EnrichmentPlan, EnrichmentReport
    from toolsearch.catalog.enrichment_prompt import EnrichmentProblem
    from toolsearch.chat.models.anthropic_messages import AnthropicModel
    from toolsearch.chat.models.openai_chat import OpenAIChatModel
    from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
    from toolsearch.wire.capabilities import Endpoint

_MOST_PROBLEMS = 20


def enrich(
    sources: SourcesArgument = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The file of requests; tools that it has already are left out."),
    ],
    model: Annotated[str | None, typer.Option(help="The model that writes; only --dry-run needs none.")] = None,
    wire_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"The model's API: {', '.join(DEFAULT_MODELS)}. Default: by the model's name.",
            autocompletion=model_formats,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The API's address, if not its maker's. The key comes from the environment."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost, and ask nothing.")] = False,
    skip_shipped: Annotated[
        bool, typer.Option("--skip-shipped", help="Leave out tools whose requests ship with the package.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, metavar="N", help="Calls at most.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Tokens at most, in and out of all calls.")
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="The model's prices, in dollars for a million tokens: input=3,output=15."),
    ] = None,
    tools_per_call: Annotated[int, typer.Option(min=1, metavar="N", help="Tools in one call.")] = 20,
    at_once: Annotated[
        int, typer.Option(min=1, metavar="N", help="Calls at the same time; with --max-tokens it is one.")
    ] = 4,
    allow: AllowOption = None,
    deny: DenyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Let a model write what users ask for when they need a tool or skill, four requests for each, into a file.

    SOURCE may also be a directory made by 'toolsearch index'. Searches use the file by the setting
    index.requests_files. Each call of the model adds to the file, and the next run goes on from there. Exit code 1 if
    the model left tools out.
    """
    from toolsearch.access.reach import EVERY_TOOL, Reach

    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise BadSettingError(f"--base-url must begin with https:// or http://, not {base_url!r:.80}")
    endpoint = _endpoint(model, wire_format, is_asked=not dry_run)
    price = _price(endpoint, prices) if model is not None or prices is not None else None
    if index is None and sources and len(sources) == 1 and _is_index(Path(sources[0])):
        index, sources = Path(sources[0]), None
    with opened_catalog(sources, index, settings) as (catalog, _):
        work = _work(
            catalog, out, Reach.parse(allow or EVERY_TOOL, deny or ()), tools_per_call, skip_shipped=skip_shipped
        )
        if dry_run:
            _show_plan(work.plan, out, model, price, as_json=as_json)
            return ExitCode.OK
        tell(_said_before(work.plan, price))
        with progress_on_stderr() as bar:
            report = run_sync(
                _asked(work, endpoint, base_url, (max_calls, max_tokens, at_once), bar), "Catalog.enrich()"
            )
    _show_report(report, out, endpoint, price, as_json=as_json)
    return ExitCode.NOTHING if report.problems and report.left else ExitCode.OK


def _is_index(folder: Path) -> bool:
    """Whether *folder* is an index; any other folder is a source that cannot be read."""
    from toolsearch.catalog.index_directory import GenerationFolders

    return folder.is_dir() and not GenerationFolders(folder).is_empty


def _endpoint(model: str | None, wire_format: str | None, *, is_asked: bool) -> Endpoint:
    if model is None and is_asked:
        raise BadSettingError("name the model that writes by --model NAME, or use --dry-run")
    return endpoint_of(wire_format, model)


def _price(endpoint: Endpoint, given: str | None) -> Prices | None:
    """The price of the model; None if it is neither given nor known."""
    from toolsearch.bench.prices import prices_of

    if given is None:
        try:
            return prices_of(endpoint.model)
        except UnknownPriceError:
            return None
    return prices_for(endpoint, given)


def _work(catalog: Catalog, out: Path, reach: Reach, tools_per_call: int, *, skip_shipped: bool) -> Enrichment:
    from toolsearch.catalog.enrichment import Enrichment, found_definitions
    from toolsearch.catalog.request_packs import NO_REQUESTS, shipped_requests

    definitions = found_definitions(catalog.entries())
    skipped = shipped_requests() if skip_shipped else NO_REQUESTS
    only = {each.name for each in definitions if reach.allows(each) and not skipped.requests_for(each)}
    return Enrichment(definitions, out, only=only, tools_per_call=tools_per_call)


async def _asked(
    work: Enrichment,
    endpoint: Endpoint,
    base_url: str | None,
    bounds: tuple[int | None, int | None, int],
    bar: Callable[[str, int, int], None],
) -> EnrichmentReport:
    from toolsearch.chat.client import ChatClient

    model, (max_calls, max_tokens, at_once) = _model(endpoint, base_url), bounds
    try:
        return await work.run(
            ChatClient(model),
            max_calls=max_calls,
            max_tokens=max_tokens,
            at_once=at_once,
            progress=lambda done, total: bar("Writing requests", done, total),
        )
    finally:
        await model.close()


def _model(endpoint: Endpoint, base_url: str | None) -> AnthropicModel | OpenAIChatModel | OpenAIResponsesModel:
    from toolsearch.chat.models.anthropic_messages import AnthropicModel
    from toolsearch.chat.models.openai_chat import OpenAIChatModel
    from toolsearch.chat.models.openai_responses import OpenAIResponsesModel

    if endpoint.wire_format == "anthropic":
        return AnthropicModel(endpoint.model, base_url=base_url)
    kind = OpenAIChatModel if endpoint.wire_format == "openai" else OpenAIResponsesModel
    return kind(endpoint.model, base_url=base_url)


def _said_before(plan: EnrichmentPlan, price: Prices | None) -> str:
    return (
        f"{plan.tools:,} tools to ask for ({plan.known:,} are in the file), {plan.calls:,} calls, about "
        f"{plan.input_tokens:,} tokens in and {plan.output_tokens:,} out{_dollars(_cost_of(plan, price))}."
    )


def _show_plan(plan: EnrichmentPlan, out: Path, model: str | None, price: Prices | None, *, as_json: bool) -> None:
    if not as_json:
        stdout().print(_said_before(plan, price))
        return
    print_json(
        {
            "file": str(out),
            "model": model or "",
            "tools": plan.tools,
            "known": plan.known,
            "calls": plan.calls,
            "input_tokens": plan.input_tokens,
            "output_tokens": plan.output_tokens,
            "is_estimate": True,
            "cost": _cost_of(plan, price),
        }
    )


def _show_report(
    report: EnrichmentReport, out: Path, endpoint: Endpoint, price: Prices | None, *, as_json: bool
) -> None:
    cost = _cost_of(report, price)
    if as_json:
        print_json(
            {
                "file": str(out),
                "model": endpoint.model,
                "written": len(report.written),
                "left": report.left,
                "calls": report.calls,
                "input_tokens": report.usage.input_tokens,
                "output_tokens": report.usage.output_tokens,
                "is_estimate": False,
                "cost": cost,
                "problems": [asdict(problem) for problem in report.problems],
            }
        )
        return
    _show_problems(report.problems)
    stdout().print(
        f"{len(report.written):,} tools written to {out}, {report.left:,} left; {report.calls:,} calls, "
        f"{report.usage.input_tokens:,} tokens in and {report.usage.output_tokens:,} out{_dollars(cost)}."
    )
    if report.left:
        tell("Run it again for those that are left.")


def _show_problems(problems: Sequence[EnrichmentProblem]) -> None:
    if not problems:
        return
    tools: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        tools.setdefault((problem.code, problem.reason), []).append(problem.tool)
    shown = table("", ("what", "tool", "why"), flexible="why")
    for (code, reason), names in list(tools.items())[:_MOST_PROBLEMS]:
        shown.add_row(code, line(names[0] if len(names) == 1 else f"{len(names):,} tools"), line(reason))
    stdout().print(shown)
    if len(tools) > _MOST_PROBLEMS:
        warn(f"{len(tools) - _MOST_PROBLEMS:,} more causes of problems; --json lists them")


def _cost_of(what: EnrichmentPlan | EnrichmentReport, price: Prices | None) -> float | None:
    return None if price is None else round(what.cost(input_price=price.input, output_price=price.output), 6)


def _dollars(cost: float | None) -> str:
    return "" if cost is None else f", ${cost:,.4f}"
