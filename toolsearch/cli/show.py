"""``toolsearch show``: one tool, as it is or as a model would be sent it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toolsearch.cli.completion import tool_formats, tool_names
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption
from toolsearch.cli.output import legible, line, print_json, print_value, stdout

_NOT_CALLABLE = "no: its source says nothing of how to run it; 'call --base-url' runs one of an OpenAPI document"


def show(
    name: Annotated[str, typer.Argument(help="The tool's name.", autocompletion=tool_names)],
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    tool_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Print what a model is sent, as JSON: openai, openai-responses, anthropic or mcp.",
            autocompletion=tool_formats,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show a tool's definition, what it costs in tokens, and where it came from."""
    from toolsearch.access.reach import Reach
    from toolsearch.wire.formats import render_definition
    from toolsearch.wire.sendable_tools import sending_notes

    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        view = engine.view(Reach())
        tool = view.get(name)
        if tool_format is not None:
            print_value(render_definition(tool.definition, tool_format))
            return ExitCode.OK
        facts: dict[str, Any] = {
            "name": tool.name,
            "title": tool.definition.title,
            "server": tool.definition.server,
            "source": tool.source,
            "tags": list(tool.definition.tags),
            "annotations": dict(tool.definition.annotations),
            "tokens": view.tokens_of(tool.definition),
            "is_estimate": engine.counter.estimate,
            "fingerprint": tool.definition.fingerprint(),
            "is_callable": tool.is_callable,
            "sent_otherwise": sending_notes(tool.definition),
            "description": tool.definition.description,
            "input_schema": tool.definition.input_schema,
            "output_schema": tool.definition.output_schema,
        }
    if as_json:
        print_json(facts)
    else:
        _show(facts)
    return ExitCode.OK


def _show(facts: dict[str, Any]) -> None:
    from rich.json import JSON
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    console.print(line(facts["name"], "bold cyan"))
    grid = Table.grid(padding=(0, 2))
    estimate = " (estimate)" if facts["is_estimate"] else ""
    rows = {
        "title": facts["title"],
        "server": facts["server"],
        "source": facts["source"],
        "tags": ", ".join(facts["tags"]),
        "hints": ", ".join(f"{key}={value}" for key, value in facts["annotations"].items()),
        "tokens": f"{facts['tokens']:,}{estimate}, as raw JSON",
        "fingerprint": facts["fingerprint"],
        "callable": "yes" if facts["is_callable"] else _NOT_CALLABLE,
        "sent otherwise": "; ".join(facts["sent_otherwise"]),
    }
    for label, value in rows.items():
        if value:
            grid.add_row(Text(label, "bold"), line(str(value)))
    console.print(grid)
    if facts["description"]:
        console.print()
        console.print(Text(legible(facts["description"])))
    for label in ("input_schema", "output_schema"):
        if facts[label] is not None:
            console.print()
            console.print(Text(label.replace("_", " "), "bold"))
            # ASCII, so that nothing in it can steer the terminal
            console.print(Padding(JSON(json.dumps(facts[label])), (0, 2)))
