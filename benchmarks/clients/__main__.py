"""What do real coding agents make of the gateway? Each in its pinned or its newest version, with a scripted model

    python -m benchmarks.clients [--only codex,opencode] [--newest] [--many] [--calls] [--program FILE] [--json FILE]

It installs the agents from npm, about 2 GB, and then needs no network. What differs from the stored figures is printed
below the table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.catalogues import evenly
from benchmarks.choosing import named, those_of
from benchmarks.clients import installing
from benchmarks.clients.drivers import AGENTS, Agent, Servers
from benchmarks.clients.measuring import MANY, TIME, TIME_SERVERS, Bench, many_servers, spoken, task
from benchmarks.clients.script import Made, Task
from benchmarks.datasets import add_sets_option
from benchmarks.environments import NotInstalledError
from benchmarks.figure_tables import markdown_table
from benchmarks.results import FIGURES, ROOT, read_figures, write_figures

STORED: Final = FIGURES / "clients.json"
_CACHE = ROOT / "benchmarks" / ".cache" / "agents"
_LISTING = Path("livemcp", "tools.jsonl")  # of published MCP servers
_TOOLS = 300
_SHOWN = 600  # characters of a result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    by_name = {agent.name: agent for agent in AGENTS}
    agents = [by_name[name] for name in those_of(named(parser, options.only, by_name, "agent"), by_name)]
    listing: Path = options.sets / _LISTING
    if options.many and not listing.exists():
        print(f"--many takes its tools from {listing}, which is not there", file=sys.stderr)
        return 2
    try:
        programs = (
            installing.newest(options.environments, [agent.package for agent in agents])
            if options.newest
            else installing.pinned(options.environments)
        )
    except NotInstalledError as error:
        print(f"the agents cannot be installed: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="agents") as made:
        folder = Path(made)
        tasks: list[tuple[Task, Servers]] = [(TIME, TIME_SERVERS)]
        if options.many:
            tasks.append((MANY, many_servers(folder, _tools(listing))))
        bench = Bench(programs, folder, options.program.absolute().parent if options.program else None)
        figures = {agent.name: _measured(bench, agent, tasks, shows_calls=options.calls) for agent in agents}
    for line in tables(figures):
        print(line)
    stored: dict[str, Any] = read_figures(STORED) if STORED.exists() else {}
    for line in changes(stored, figures):
        print(line)
    if options.json:
        write_figures(options.json, "clients", stored | figures if options.json == STORED else figures)
    return 0


def tables(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """In Markdown: what each agent is like, and what each task costs."""
    keys = ("version", "opens_with", "client_info", "names", "reads", "added_tool")
    yield from markdown_table(
        ("agent", "version", "opens with", "names itself", "names tools", "its model reads", "calls an added tool"),
        [(name, *(str(each[key]) for key in keys)) for name, each in figures.items()],
    )
    yield ""
    yield from markdown_table(
        ("agent", "task", "servers", "ours listed", "first request", "done", "rounds", "tokens sent", "failed calls"),
        [row for name, each in figures.items() for row in _task_rows(name, each["tasks"])],
    )


def _task_rows(name: str, tasks: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[tuple[str, ...]]:
    for asked, ways in tasks.items():
        for way, row in ways.items():
            yield (
                name,
                asked,
                way if row.get("is_imported", True) else f"{way}, not imported",
                str(row.get("first_list", "-")),
                "never" if row["first_s"] is None else f"{row['first_s']:.1f} s",
                "yes" if row["done"] else "no",
                str(row["rounds"]),
                f"{row['tokens']:,}",
                str(row["failed_calls"]),
            )


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """A line for each figure that differs. Seconds are not compared, nor are tokens that differ by less than 5 %."""
    for name in (name for name in new if name in old):
        before, after = dict(_flat(old[name])), dict(_flat(new[name]))
        for key, now in after.items():
            was = before.get(key, now)
            if was != now and not key.endswith("first_s") and not _is_near(key, was, now):
                yield f"{name}: {key} was {was}, and is {now}"


def _is_near(key: str, was: Any, now: Any) -> bool:
    return key.endswith("tokens") and abs(now - was) < 0.05 * was


def _flat(figures: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{before}{key}/")
        else:
            yield f"{before}{key}", value


def _measured(
    bench: Bench, agent: Agent, tasks: Iterable[tuple[Task, Servers]], *, shows_calls: bool
) -> dict[str, Any]:
    print(f"{agent.name} ...", file=sys.stderr, flush=True)
    figures: dict[str, Any] = {"version": bench.programs.version(agent.package), **spoken(bench, agent), "tasks": {}}
    for asked, servers in tasks:
        ways: dict[str, Any] = {}
        for way, is_behind in (("direct", False), ("gateway", True)):
            ways[way], made = task(bench, agent, asked, servers, is_behind=is_behind)
            if shows_calls:
                _show(agent, asked, way, made)
        figures["tasks"][asked.server] = ways
    return figures


def _show(agent: Agent, asked: Task, way: str, made: Iterable[Made]) -> None:
    for each in made:
        print(f"{agent.name}, {asked.server}, {way}: {each.way}, {each.name}: {'good' if each.is_good else 'FAILED'}")
        print(f"    {each.result[:_SHOWN]!r}")


def _tools(listing: Path) -> list[dict[str, Any]]:
    """The tool of the task, and as many others of the listing as are wanted, evenly spread."""
    rows = [json.loads(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    by_name = {row["name"]: row for row in rows}
    chosen = {row["name"]: row for row in evenly([*by_name.values()], _TOOLS - 1)} | {MANY.tool: by_name[MANY.tool]}
    return [
        {"name": name, "description": row["description"], "inputSchema": {"type": "object"} | row["input_schema"]}
        for name, row in sorted(chosen.items())
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients", description=(__doc__ or "").partition("\n")[0]
    )
    add_sets_option(parser)
    parser.add_argument("--only", default="", metavar="NAMES", help="these agents, by comma; else all")
    parser.add_argument("--newest", action="store_true", help="in their newest versions, not in those of tests/clients")
    parser.add_argument("--many", action="store_true", help=f"a second task, with a server of {_TOOLS} tools")
    parser.add_argument("--calls", action="store_true", help="print each call, and what the model reads of its result")
    parser.add_argument(
        "--program", type=Path, metavar="FILE", help="another program 'toolsearch' than this checkout's, as of a commit"
    )
    parser.add_argument(
        "--environments", type=Path, default=_CACHE, metavar="FOLDER", help="where agents are installed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
