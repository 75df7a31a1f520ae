"""How the demo looks on a screen."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toolsearch.cli.demo_story import Exchange, Search
from toolsearch.cli.output import legible, line, program, seconds, stdout, table
from toolsearch.tools.calls import ToolCall
from toolsearch.wire.arguments import arguments_object
from toolsearch.wire.openai_chat import write_calls

_NEXT = (  # each works where nothing but the package is installed, the last two after the one before them
    ("search any module", 'search "parse a web address" --source urllib.parse'),
    ("keep an index of modules and files, in .toolsearch", "index statistics textwrap"),
    ("run a tool of it", "call statistics__median data=3 data=1 data=4"),
    ("count what its tools cost a model", "tokens"),
)
_COLUMNS = 80
_ARGUMENT_WIDTH = 90  # characters of a call's arguments or result that the table shows


def show(report: dict[str, Any], searches: Sequence[Search], exchanges: Sequence[Exchange]) -> None:
    console = stdout()
    console.print(_opening(report))
    if report["servers"]:
        console.print(_servers(report["servers"]))
    console.print(_searches(searches))
    console.print(_conversation(exchanges))
    console.print(_one_round(next(each for each in exchanges if each.appended)))
    console.print(_savings(report["savings"]))
    _show_next_steps(console)


def _opening(report: dict[str, Any]) -> RenderableType:
    before, after = report["before"], report["after"]
    origin = f"the functions of {report['modules']} modules of Python's standard library"
    answering = [server["name"] for server in report["servers"] if server["tools"]]
    if answering:
        origin += f", and those of the MCP servers {', '.join(answering)}"
    grid = _grid("left", "right", "right")
    grid.add_row("before", f"{before['tools']:,} definitions", Text(f"{before['tokens']:,} tokens", "bold red"))
    grid.add_row("after", "toolSearchTool", Text(f"{after['tokens']:,} tokens", "bold green"))
    text = Text(f"{before['tools']:,} tools: {legible(origin)}.\nWhat a model is sent with every request:")
    return _panel("toolsearch", "cyan", text, grid)


def _grid(*justify: JustifyMethod) -> Table:
    grid = Table.grid(padding=(0, 3))
    for each in justify:
        grid.add_column(justify=each)
    return grid


def _panel(title: str, style: str, *parts: RenderableType) -> Panel:
    return Panel(Group(*parts), title=title, title_align="left", border_style=style)


def _servers(servers: Sequence[dict[str, Any]]) -> RenderableType:
    shown = table("MCP servers", ("server", "state", "tools", "time", "error"), numbers=("tools", "time"))
    for server in servers:
        style = "red" if server["error"] else "green"
        shown.add_row(
            line(server["name"]),
            line(server["state"], style),
            f"{server['tools']:,}",
            seconds(server["seconds"]),
            line(server["error"]),
        )
    return shown


def _searches(searches: Sequence[Search]) -> RenderableType:
    shown = table("Ways to search", ("by", "query", "finds", "ms"), numbers=("ms",), flexible="finds")
    for search in searches:
        if search.unavailable:
            shown.add_row(line(search.strategy), "", Text(f"not available: {search.unavailable}", "yellow"), "")
            continue
        found = ", ".join(f"{name} {score:.2f}" for name, score in search.found)
        result = line(found) if found else Text("nothing: no tool fits", "italic")
        shown.add_row(line(search.strategy), Text(search.query, "cyan"), result, f"{search.seconds * 1000:.1f}")
    return shown


def _conversation(exchanges: Sequence[Exchange]) -> RenderableType:
    title = "A conversation (the model's part is scripted, all else is real)"
    columns = ("#", "tools", "tokens", "the model", "gets")
    shown = table(title, columns, numbers=("#", "tools", "tokens"), flexible="gets")
    for number, exchange in enumerate(exchanges, 1):
        if exchange.user:
            shown.add_row("", "", "", Text(f"User: {exchange.user}", "bold"), "")
        sent = (str(number), str(len(exchange.shown)), f"{exchange.tokens:,}")
        for said, got in _said_and_got(exchange):
            shown.add_row(*sent, line(said), line(got))
            sent = ("", "", "")
    return shown


def _said_and_got(exchange: Exchange) -> list[tuple[str, str]]:
    if exchange.calls:
        gets = [_short(_gist(message["content"])) for message in exchange.appended]
        return list(zip(map(_call, exchange.calls), gets, strict=True))
    evicted = f"evicted: {', '.join(exchange.evicted)}" if exchange.evicted else ""
    return [(f"answers: {exchange.reply['content']}", evicted)]


def _call(call: ToolCall) -> str:
    arguments = arguments_object(call)
    written = ", ".join(json.dumps(value) for key, value in arguments.items() if key != "limit")
    return f"{call.name}({_short(written)})"


def _gist(result: str) -> str:
    """The names that the search tool's answer lists, or a tool's whole result."""
    listed = [entry.removeprefix("- ").partition("(")[0] for entry in result.splitlines() if entry.startswith("- ")]
    return ", ".join(listed) or result


def _short(text: str) -> str:
    return text if len(text) <= _ARGUMENT_WIDTH else text[: _ARGUMENT_WIDTH - 1] + "…"


def _one_round(exchange: Exchange) -> RenderableType:
    return _panel(
        "Request 1 in OpenAI's format",
        "dim",
        Text("tool_calls of the reply", "bold"),
        line(json.dumps(write_calls(exchange.calls)), "cyan"),
        Text("messages that session.execute appends", "bold"),
        *(line(json.dumps(message)) for message in exchange.appended),
    )


def _savings(savings: dict[str, Any]) -> RenderableType:
    needed = savings["requests"] - savings["search_rounds"]
    spent = savings["sent_tokens"] + savings["written_tokens"]
    counted = "estimated" if savings["is_estimate"] else "counted as raw JSON in o200k"
    grid = _grid("left", "right", "right")
    grid.add_row("every definition every time", f"{needed} requests", f"{savings['all_tools_tokens']:,} tokens")
    grid.add_row("with toolSearchTool", f"{savings['requests']} requests", f"{spent:,} tokens")
    grid.add_row(Text("saved", "bold"), "", Text(f"{savings['saved_share']:.1%}", "bold green"))
    fine_print = (
        f"{savings['search_rounds']} of the requests are extra ones, made only to search; each also sends the rest of "
        f"the conversation once more, which is not counted here. The tool list changed, and so lost its cached prompt, "
        f"{savings['cache_breaks']} time(s). Tokens of tools, {counted}."
    )
    return _panel("Tokens of this conversation", "green", grid, Text(fine_print, "dim"))


def _show_next_steps(console: Console) -> None:
    """Without a box, and wrapped only where a shell goes on reading, so that each command can be copied."""
    console.print(Text("Try next", "bold"))
    for what, command in _NEXT:
        console.print(Text(f"  {what}:", "dim"))
        console.print(Text(_folded(f"{program()} {command}"), "cyan"), soft_wrap=True)
    console.print(
        Text("With the extra 'mcp', --mcp FILE adds the MCP servers of your mcpServers file to this demo.", "dim")
    )


def _folded(command: str) -> str:
    """*command* in lines of at most 80 columns, where its words allow it; on Windows, whose shells differ, in one."""
    if os.name != "posix":
        return f"    {command}"
    lines: list[str] = []
    row = "   "
    for word in re.findall(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+", command):
        if len(row) + 1 + len(word) > _COLUMNS - len(" \\") and row.strip():
            lines.append(f"{row} \\")
            row = "     "
        row += f" {word}"
    return "\n".join([*lines, row])
