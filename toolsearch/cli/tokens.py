"""``toolsearch tokens``: what the definitions of a catalog cost in tokens, in all, by server and by tool."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption
from toolsearch.cli.output import line, print_json, stdout, table

_MOST_CHANGED = 20  # tools that are shown
_COUNTED_AS = "raw JSON of name, description and input schema; providers bill something near it, not it"


def tokens(
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the most expensive tools to list.")] = 10,
    as_json: JsonOption = False,
) -> int:
    """Show what the catalog costs in tokens: all of it, by server, the most expensive tools, and the search tool."""
    from toolsearch.access.reach import Reach
    from toolsearch.discovery.search_tool import search_tool_definition
    from toolsearch.wire.sendable_tools import sending_notes

    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        view = engine.view(Reach())
        costs: dict[str, int] = {}
        servers: defaultdict[str, list[int]] = defaultdict(list)
        changed: dict[str, list[str]] = {}
        for tool in engine.catalog:
            costs[tool.name] = view.tokens_of(tool.definition)
            servers[tool.definition.server].append(costs[tool.name])
            if notes := sending_notes(tool.definition):
                changed[tool.name] = notes
        total = sum(costs.values())
        report: dict[str, Any] = {
            "tools": len(costs),
            "tokens": total,
            # with all strategies, so this is the largest that it can be
            "search_tool_tokens": view.tokens_of(search_tool_definition()),
            "is_shown_whole": engine.options.pass_through.covers(tools=len(costs), tokens=total),
            "is_estimate": engine.counter.estimate,
            "counted_as": _COUNTED_AS,
            "servers": [
                {"name": server, "tools": len(each), "tokens": sum(each)}
                for server, each in sorted(servers.items(), key=lambda item: (-sum(item[1]), item[0]))
            ],
            "most_expensive": [
                {"name": name, "tokens": cost}
                for name, cost in sorted(costs.items(), key=lambda item: (-item[1], item[0]))[:top]
            ],
            "sent_otherwise": [{"name": name, "notes": changed[name]} for name in sorted(changed)],
        }
    if as_json:
        print_json(report)
    else:
        _show(report)
    return ExitCode.OK


def _show(report: dict[str, Any]) -> None:
    console = stdout()
    estimate = ", estimate" if report["is_estimate"] else ""
    every = table("In every model request", ("what", "tools", "tokens"), numbers=("tools", "tokens"))
    every.add_row("all definitions", f"{report['tools']:,}", f"{report['tokens']:,}")
    every.add_row("toolSearchTool alone", "1", f"{report['search_tool_tokens']:,}")
    console.print(every)
    if report["is_shown_whole"]:
        console.print("So few tools are shown to the model whole: searching would cost more than it saves.\n")
    by_server = table("By server", ("server", "tools", "tokens"), numbers=("tools", "tokens"))
    for server in report["servers"]:
        by_server.add_row(line(server["name"] or "(none)"), f"{server['tools']:,}", f"{server['tokens']:,}")
    console.print(by_server)
    if report["most_expensive"]:
        top = table("Most expensive", ("tool", "tokens"), numbers=("tokens",))
        for tool in report["most_expensive"]:
            top.add_row(line(tool["name"], "cyan"), f"{tool['tokens']:,}")
        console.print(top)
    if report["sent_otherwise"]:
        console.print(_otherwise(report["sent_otherwise"]))
    console.print(f"Counted: {report['counted_as']}{estimate}.")


def _otherwise(changed: list[dict[str, Any]]) -> Any:
    """What models are sent otherwise than the source has it, since their APIs do not take it."""
    rows = table("Sent otherwise than written", ("tool", "what is changed"))
    for tool in changed[:_MOST_CHANGED]:
        rows.add_row(line(tool["name"], "cyan"), line("; ".join(tool["notes"])))
    if len(changed) > _MOST_CHANGED:
        rows.add_row(line(f"and {len(changed) - _MOST_CHANGED:,} more"), line("see --json"))
    return rows
