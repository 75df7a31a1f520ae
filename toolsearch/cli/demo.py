"""``toolsearch demo``: searches, calls and savings on real tools, without any preparation."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.options import EncoderOption, JsonOption
from toolsearch.cli.output import print_json


def demo(
    *,
    mcp: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="Also take the MCP servers of this mcpServers file.")
    ] = None,
    encoder: EncoderOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show tool search on some hundreds of functions of Python's standard library. Needs no network and no model.

    A model's part in the conversation is scripted; searches, calls and token counts are real.
    """
    from contextlib import closing

    from toolsearch.access.reach import Reach
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.catalog.sources.mcp import McpSource
    from toolsearch.cli import demo_story as story

    with closing(Catalog()) as catalog:
        story.load_standard_library(catalog)
        servers: list[dict[str, Any]] = []
        if mcp is not None:
            source = McpSource(mcp)
            catalog.load(source)
            servers = [asdict(server) for server in source.servers]
        with story.open_engine(catalog, encoder) as engine:
            session = engine.session("demo")
            after = {"tools": 1, "tokens": story.search_tool_tokens(engine, session)}
            answering = [server["name"] for server in servers if server["tools"]]
            searches = list(story.searches(engine, answering, time.perf_counter))
            exchanges = asyncio.run(story.converse(engine, session))
            report = {
                "modules": len(story.MODULES),
                "servers": servers,
                "before": {"tools": len(catalog), "tokens": engine.view(Reach()).tokens},
                "after": after,
                "savings": story.savings_facts(session.savings()),
                "notes": engine.notes,
            }
    if as_json:
        told = {"searches": [*map(asdict, searches)], "conversation": [*map(asdict, exchanges)]}
        print_json(report | told)
    else:
        from toolsearch.cli.demo_story import show

        show(report, searches, exchanges)
    return ExitCode.OK
