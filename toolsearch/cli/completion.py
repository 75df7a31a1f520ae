"""What a shell completes on the command line. It reads what an index holds, and starts and prints nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from toolsearch.tools.definition import ToolDefinition

_MOST_TOOLS = 500  # a shell asks about more than some hundreds before it shows them
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")


def strategies(incomplete: str) -> list[str]:
    from toolsearch_indexes.strategies import STRATEGIES

    return _starting(incomplete, STRATEGIES)


def tool_formats(incomplete: str) -> list[str]:
    from toolsearch.wire.formats import TOOL_FORMATS

    return _starting(incomplete, TOOL_FORMATS)


def model_formats(incomplete: str) -> list[str]:
    from toolsearch.cli.bench_endpoint import DEFAULT_MODELS

    return _starting(incomplete, DEFAULT_MODELS)


def tool_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, [each.name for each in _known(ctx)])[:_MOST_TOOLS]


def server_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, {each.server for each in _known(ctx) if each.server})


def reach_rules(ctx: typer.Context, incomplete: str) -> list[str]:
    known = _known(ctx)
    rules = {f"server:{each.server}" for each in known if each.server} | {
        f"tag:{tag}" for each in known for tag in each.tags
    }
    return [*_starting(incomplete, rules), *_starting(incomplete, [each.name for each in known])[:_MOST_TOOLS]]


def arguments(ctx: typer.Context, incomplete: str) -> list[str]:
    """``key=`` for each parameter of the tool that the command line names before."""
    name = ctx.params.get("name")
    tools = [each for each in _known(ctx) if each.name == name]
    return [
        key
        for each in tools
        for key in _starting(incomplete, [f"{key}=" for key in each.input_schema.get("properties", {})])
    ]


def source_specs(incomplete: str) -> list[str]:
    """Files that can be a source, and folders on the way to them; modules of the working directory by name."""
    folder, _, start = incomplete.rpartition(os.sep)
    inside = Path(folder or (os.sep if incomplete.startswith(os.sep) else "."))
    try:
        entries = sorted(inside.iterdir())
    except OSError:
        return []
    front = incomplete[: len(incomplete) - len(start)]
    offered: list[str] = []
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            offered.append(f"{front}{entry.name}{os.sep}")
        elif entry.suffix.lower() in _SUFFIXES:
            offered.append(f"{front}{entry.name}")
        elif entry.suffix == ".py" and not front and entry.stem.isidentifier():
            offered.append(entry.stem)
    return offered


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(sorted(names)) if name.startswith(incomplete)]


def _known(ctx: typer.Context) -> Sequence[ToolDefinition]:
    """The tools of the index that the command line names, or of its sources if these are modules or listings."""
    from toolsearch.errors import ToolSearchError

    try:
        return _read(ctx.params)
    except (ToolSearchError, OSError):
        return ()


def _read(params: dict[str, Any]) -> Sequence[ToolDefinition]:
    from toolsearch.catalog.loading import open_source
    from toolsearch.catalog.source import LiveSource
    from toolsearch.catalog.warm_start import IndexDirectory
    from toolsearch.cli.opening import index_folder, read_settings

    if specs := params.get("source"):
        still = [source for source in map(open_source, specs) if not isinstance(source, LiveSource)]
        return [tool.definition for source in still for tool in source.load().tools]
    folder = index_folder(read_settings(params.get("settings"), index__index_dir=params.get("index")))
    with IndexDirectory(folder).open_catalog() as catalog:
        return [tool.definition for tool in catalog]
