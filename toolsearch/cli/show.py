"""``toolsearch show`` and ``tokens``: a tool as a model is sent it, a skill, and the cost of definitions in tokens."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption, tool_formats, tool_names
from toolsearch.cli.output import legible, line, print_json, print_value, size, stdout, table

if TYPE_CHECKING:
    from toolsearch.discovery.view import View
    from toolsearch.tokens import TokenCounter
    from toolsearch.tools.definition import Tool

_NOT_CALLABLE = "no: its source says nothing of how to run it; 'call --base-url' runs one of an OpenAPI document"


def show(
    name: Annotated[str, typer.Argument(help="The name of the tool, or of the skill.", autocompletion=tool_names)],
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    tool_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Print the definition for a model, as JSON: openai, openai-responses, anthropic or mcp.",
            autocompletion=tool_formats,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show a tool's definition, cost in tokens and source, or a skill's frontmatter and files.

    It shows prompts and resources by their names, too. 'toolsearch call' reads the text of a skill.
    """
    from toolsearch.access.reach import Reach
    from toolsearch.wire.formats import render_definition

    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        view = engine.view(Reach())
        entry = view.get_entry(name)
        if tool_format is not None:
            print_value(render_definition(entry.definition, tool_format))
            return ExitCode.OK
        facts = _facts(entry, view, engine.counter)
    if as_json:
        print_json(facts)
    else:
        _show(facts)
    return ExitCode.OK


def _facts(entry: Tool, view: View, counter: TokenCounter) -> dict[str, Any]:
    from toolsearch.documents.skills import skill_of
    from toolsearch.wire.sendable_tools import sending_notes

    definition = entry.definition
    facts: dict[str, Any] = {
        "name": entry.name,
        "kind": definition.kind,
        "title": definition.title,
        "server": definition.server,
        "source": entry.source,
        "tags": list(definition.tags),
        "annotations": dict(definition.annotations),
        "fingerprint": definition.fingerprint(),
        "is_callable": entry.is_callable,
        "description": definition.description,
        "input_schema": definition.input_schema,
    }
    if definition.kind == "tool":
        facts |= {
            "tokens": view.tokens_of(definition),
            "is_estimate": counter.estimate,
            "sent_otherwise": sending_notes(definition),
            "output_schema": definition.output_schema,
        }
    if (skill := skill_of(entry)) is not None:
        files = [{"path": each.path, "size": each.size, "digest": each.digest} for each in skill.files.values()]
        facts |= {"uri": skill.uri, "frontmatter": skill.frontmatter, "files": files}
    return facts


def _show(facts: dict[str, Any]) -> None:
    from rich.json import JSON
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    console.print(line(facts["name"], "bold cyan"))
    grid = Table.grid(padding=(0, 2))
    is_tool = facts["kind"] == "tool"
    estimate = " (estimate)" if facts.get("is_estimate") else ""
    rows = {
        "kind": "" if is_tool else facts["kind"],
        "title": facts["title"],
        "server": facts["server"],
        "source": facts["source"],
        "tags": ", ".join(facts["tags"]),
        "hints": ", ".join(f"{key}={value}" for key, value in facts["annotations"].items()),
        "tokens": f"{facts['tokens']:,}{estimate}, as raw JSON" if is_tool else "",
        "fingerprint": facts["fingerprint"],
        "callable": "yes" if facts["is_callable"] else _NOT_CALLABLE,
        "sent otherwise": "; ".join(facts.get("sent_otherwise", ())),
        "URI": facts.get("uri", ""),
    }
    for label, value in rows.items():
        if value:
            grid.add_row(Text(label, "bold"), line(str(value)))
    console.print(grid)
    if facts["description"]:
        console.print()
        console.print(Text(legible(facts["description"])))
    if "files" in facts:
        files = table("Files", ("file", "size", "digest"), numbers=("size",), flexible="digest")
        for each in facts["files"]:
            files.add_row(line(each["path"]), size(each["size"]), each["digest"])
        console.print(files)
    for label in ("frontmatter",) if "files" in facts else ("input_schema", "output_schema"):
        if facts.get(label) is not None:
            console.print()
            console.print(Text(label.replace("_", " "), "bold"))
            # ASCII cannot contain anything that steers the terminal.
            console.print(Padding(JSON(json.dumps(facts[label])), (0, 2)))


_MOST_CHANGED = 20  # changed tools that are shown
_COUNTED_AS = "raw JSON of name, description and input schema; providers bill something near it, not it"


def tokens(
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the most expensive tools to list.")] = 10,
    as_json: JsonOption = False,
) -> int:
    """Show the catalog's cost in tokens: in all, by server, of the most expensive tools, and of the search tool."""
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
            # The search tool with all strategies, which is its largest form.
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
        _show_tokens(report)
    return ExitCode.OK


def _show_tokens(report: dict[str, Any]) -> None:
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
        console.print(_changes_for_models(report["sent_otherwise"]))
    console.print(f"Counted: {report['counted_as']}{estimate}.")


def _changes_for_models(changed: list[dict[str, Any]]) -> Any:
    """The differences between definitions that models are sent and those of the source, which some APIs do not
    accept.
    """
    rows = table("Sent otherwise than written", ("tool", "what is changed"))
    for tool in changed[:_MOST_CHANGED]:
        rows.add_row(line(tool["name"], "cyan"), line("; ".join(tool["notes"])))
    if len(changed) > _MOST_CHANGED:
        rows.add_row(line(f"and {len(changed) - _MOST_CHANGED:,} more"), line("see --json"))
    return rows
