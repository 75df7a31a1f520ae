"""The story and the looks of the demo: real tools, real searches and calls, and a model with a script."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toolsearch.access.reach import Reach
from toolsearch.catalog.sources.functions import ModuleSource
from toolsearch.cli.output import legible, line, program, seconds, stdout, table
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError, EncoderError
from toolsearch.session import Session
from toolsearch.sessions.savings import Savings
from toolsearch.settings import IndexSettings, Settings
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire import openai_chat
from toolsearch.wire.messages import AssistantMessage
from toolsearch.wire.openai_chat import write_calls
from toolsearch.wire.replies import parse_tool_calls
from toolsearch.wire.reply_parts import arguments_object
from toolsearch.wiring import build_engine
from toolsearch_indexes.encoders.opening import BUILT_IN
from toolsearch_indexes.queries import Ranking, Strategy

if TYPE_CHECKING:
    from toolsearch.catalog.catalog import Catalog

# Modules of the standard library whose functions take JSON values. All are indexed. Only a few are called, and those
# have no side effects.
MODULES = (
    "base64", "binascii", "calendar", "cmath", "colorsys", "copy", "csv", "difflib", "email.utils", "fnmatch",
    "functools", "glob", "gzip", "hashlib", "heapq", "hmac", "html", "ipaddress", "json", "locale", "math",
    "mimetypes", "operator", "os.path", "platform", "random", "re", "secrets", "shlex", "shutil", "statistics",
    "string", "tempfile", "textwrap", "unicodedata", "urllib.parse", "uuid", "zlib", "zoneinfo",
)  # fmt: skip

BUDGET = Budget(max_tools=3, low_water=1)  # small enough that a few turns show evictions
_FOUND_PER_SEARCH = 3


@dataclass(frozen=True, slots=True)
class StorySearch:
    """One search. *unavailable* is the reason why it could not be made, or ""."""

    strategy: str
    query: str
    found: tuple[tuple[str, float], ...] = ()
    seconds: float = 0.0
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoryTurn:
    """A user's question, the model's calls in each request, and its final answer."""

    user: str
    calls: tuple[tuple[Call, ...], ...]
    answer: str


@dataclass(frozen=True, slots=True)
class StoryExchange:
    """One model request and its results.

    shown    names of the tools in the request
    tokens   tokens of the definitions of these tools
    reply    the model's message in the format of OpenAI's API
    appended the messages that answer its calls
    evicted  the tools that were evicted when this reply ended a turn
    """

    user: str
    shown: tuple[str, ...]
    tokens: int
    reply: dict[str, Any]
    appended: tuple[dict[str, Any], ...]
    evicted: tuple[str, ...] = ()

    @property
    def calls(self) -> list[ToolCall]:
        return parse_tool_calls(self.reply)[1]


def _search(query: str) -> Call:
    return Call(TOOL_NAME, {"query": query, "limit": _FOUND_PER_SEARCH})


TURNS = (
    StoryTurn(
        "The median of 3, 1, 4, 1 and 5?",
        ((_search("median of numbers"),), (Call("statistics__median", {"data": [3, 1, 4, 1, 5]}),)),
        "It is 3.",
    ),
    StoryTurn(
        "Which weekday was 20 July 1969?",
        ((_search("weekday of a date"),), (Call("calendar__weekday", {"year": 1969, "month": 7, "day": 20}),)),
        "A Sunday.",
    ),
    StoryTurn(
        "And of 2, 7, 1 and 8?",
        ((Call("statistics__median", {"data": [2, 7, 1, 8]}),),),
        "It is 4.5.",
    ),
    StoryTurn(
        "Shorten it. Was 1900 a leap year?",
        (
            (_search("shorten a text"), _search("leap year")),
            (
                Call("textwrap__shorten", {"text": "Hello wide world", "width": 12}),
                Call("calendar__isleap", {"year": 1900}),
            ),
        ),
        "'Hello [...]', and no.",
    ),
)


def load_standard_library(catalog: Catalog) -> None:
    with redirect_stdout(sys.stderr):
        for module in MODULES:
            catalog.load(ModuleSource(module))


def open_engine(catalog: Catalog, encoder: str | None) -> ToolSearch:
    """An engine with a clock that only counts, so that every run evicts the same tools."""
    ticks = count()
    settings = Settings(index=IndexSettings(encoder=encoder or BUILT_IN), budget=BUDGET)
    return build_engine(settings, catalog, clock=lambda: float(next(ticks)))


def searches(engine: ToolSearch, servers: Sequence[str], clock: Callable[[], float]) -> Iterator[StorySearch]:
    """Search once in each way; where one is not available, say why. *servers* are names of MCP servers."""
    words = "shorten a text to a width"
    rankings: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")
    asked: list[tuple[str, str, Strategy, str | None]] = [
        ("name", "select:statistics__median", "auto", None),
        ("regex", "/b(32|64)decode/", "auto", None),
        *((ranking, words, ranking, None) for ranking in rankings),
        ("keyword", "qwxzv jkpfh", "keyword", None),
        *((f"in {server}", "/./", "auto", server) for server in servers),
    ]
    for label, query, strategy, server in asked:
        started_s = clock()
        try:
            found = engine.search(query, limit=_FOUND_PER_SEARCH, strategy=strategy, server=server)
        except (BadQueryError, EncoderError) as error:
            yield StorySearch(label, query, unavailable="; ".join(engine.notes) or str(error))
        else:
            ranked = tuple((reference.name, round(reference.score, 3)) for reference in found)
            yield StorySearch(label, query, ranked, clock() - started_s)


async def converse(engine: ToolSearch, session: Session) -> list[StoryExchange]:
    """Play `TURNS`, one model request at a time, like a real agent loop."""
    exchanges: list[StoryExchange] = []
    for turn in TURNS:
        for calls in (*turn.calls, ()):
            shown = session.tools(format="openai")
            reply = _reply(calls, turn.answer, first_id=_calls_so_far(exchanges) + 1)
            appended = await session.execute(reply) if calls else []
            exchanges.append(
                StoryExchange(
                    user=turn.user if calls == turn.calls[0] else "",
                    shown=tuple(openai_chat.read_tool(tool).name for tool in shown),
                    tokens=_definition_tokens(engine, session, shown),
                    reply=reply,
                    appended=tuple(appended),
                    evicted=() if calls else tuple(session.end_turn()),
                )
            )
    return exchanges


def search_tool_tokens(engine: ToolSearch, session: Session) -> int:
    return engine.view(Reach()).tokens_of(session.resolve(TOOL_NAME).definition)


def savings_facts(savings: Savings) -> dict[str, Any]:
    return {
        "requests": savings.requests,
        "search_rounds": savings.search_rounds,
        "sent_tokens": savings.sent_tokens,
        "written_tokens": savings.written_tokens,
        "all_tools_tokens": savings.all_tools_tokens,
        "saved_tokens": savings.saved_tokens,
        "saved_share": round(savings.saved_share, 4),
        "cache_breaks": savings.cache_breaks,
        "is_estimate": savings.is_estimate,
    }


def _reply(calls: Sequence[Call], answer: str, *, first_id: int) -> dict[str, Any]:
    """The message of a chat completion."""
    asked = [
        ToolCall(f"call_{number}", call.name, json.dumps(call.arguments)) for number, call in enumerate(calls, first_id)
    ]
    return openai_chat.write_assistant(AssistantMessage("" if calls else answer, tuple(asked)))


def _calls_so_far(exchanges: Sequence[StoryExchange]) -> int:
    return sum(len(exchange.calls) for exchange in exchanges)


def _definition_tokens(engine: ToolSearch, session: Session, shown: Sequence[dict[str, Any]]) -> int:
    view = engine.view(Reach())
    return sum(view.tokens_of(session.resolve(tool["function"]["name"]).definition) for tool in shown)


_NEXT = (  # each works with nothing but the package installed; the last two need the one before them
    ("search any module", 'search "parse a web address" --source urllib.parse'),
    ("keep an index of modules and files, in .toolsearch", "index statistics textwrap"),
    ("run a tool of it", "call statistics__median data=3 data=1 data=4"),
    ("count what its tools cost a model", "tokens"),
)

_COLUMNS = 80
_ARGUMENT_WIDTH = 90  # characters of a call's arguments or result that the table shows


def show(report: dict[str, Any], searches: Sequence[StorySearch], exchanges: Sequence[StoryExchange]) -> None:
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


def _searches(searches: Sequence[StorySearch]) -> RenderableType:
    shown = table("Ways to search", ("by", "query", "finds", "ms"), numbers=("ms",), flexible="finds")
    for search in searches:
        if search.unavailable:
            shown.add_row(line(search.strategy), "", Text(f"not available: {search.unavailable}", "yellow"), "")
            continue
        found = ", ".join(f"{name} {score:.2f}" for name, score in search.found)
        result = line(found) if found else Text("nothing: no tool fits", "italic")
        shown.add_row(line(search.strategy), Text(search.query, "cyan"), result, f"{search.seconds * 1000:.1f}")
    return shown


def _conversation(exchanges: Sequence[StoryExchange]) -> RenderableType:
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


def _said_and_got(exchange: StoryExchange) -> list[tuple[str, str]]:
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


def _one_round(exchange: StoryExchange) -> RenderableType:
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
    """Print the next steps without a box. Commands are wrapped only at places where a shell joins lines."""
    console.print(Text("Try next", "bold"))
    for what, command in _NEXT:
        console.print(Text(f"  {what}:", "dim"))
        console.print(Text(_folded(f"{program()} {command}"), "cyan"), soft_wrap=True)
    console.print(
        Text("With the extra 'mcp', --mcp FILE adds the MCP servers of your mcpServers file to this demo.", "dim")
    )


def _folded(command: str) -> str:
    """*command* in lines of at most 80 columns, if its words allow it. On Windows, with its different shells, in one
    line.
    """
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
