"""``toolsearch call``: run one tool in the same way as a model's call."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.call_arguments import read_arguments
from toolsearch.cli.completion import arguments as completed_arguments
from toolsearch.cli.completion import tool_names
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.http_operations import HttpCalls, from_environment, http_tool
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption
from toolsearch.cli.output import print_error, print_json, print_text
from toolsearch.errors import BadArgumentsError

if TYPE_CHECKING:
    from toolsearch.session import Session
    from toolsearch.tools.calls import ToolResult
    from toolsearch.tools.definition import Tool


def call(
    name: Annotated[str, typer.Argument(help="The tool's name.", autocompletion=tool_names)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]... | JSON",
            help="The arguments, each read as its parameter's type; a list by repeating its KEY, or as JSON. Or "
            "a JSON object, @FILE with one, or - to read it from stdin.",
            autocompletion=completed_arguments,
        ),
    ] = None,
    *,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Where an operation of an OpenAPI document is sent, and that it may be.")
    ] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VARIABLE", help="A header of that request; its value is in the environment. Repeatable."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEME=VARIABLE",
            help="A key, token or user:password for a security scheme of the document, likewise. Repeatable.",
        ),
    ] = None,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Call a tool and print its result. Of MCP servers, only the tool's own one is started.

    An operation of an OpenAPI document is sent only if one of --base-url, --header and --key is given. What a tool
    itself prints goes to stderr. Exit code 1 if the tool fails, 2 if the arguments do not fit.
    """
    from toolsearch.access.reach import Reach

    http = HttpCalls(
        base_url,
        from_environment(header or (), "--header", os.environ),
        from_environment(key or (), "--key", os.environ),
    )
    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        tool = engine.view(Reach()).get(name)
        read = read_arguments(arguments or (), tool.definition)
        with redirect_stdout(sys.stderr):
            session = _session_over(http_tool(tool, http)) if http.is_given else engine.session("command line")
            result = asyncio.run(_call(session, name, read))
    if as_json:
        print_json(_as_json(result))
    elif result.is_error:
        print_error(result.error_code or "tool_failed", result.text, as_json=False)
    else:
        from toolsearch.tools.blocks import in_words

        print_text("\n".join(map(in_words, result.content)))
    if result.is_error:
        return ExitCode.USAGE if result.error_code == BadArgumentsError.code else ExitCode.NOTHING
    return ExitCode.OK


def _session_over(tool: Tool) -> Session:
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.settings import IndexSettings, Settings
    from toolsearch.wiring import build_engine

    settings = Settings(index=IndexSettings(strategy="keyword"))
    return build_engine(settings, Catalog([tool])).session("command line")


async def _call(session: Session, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
    asyncio.get_running_loop().set_default_executor(_UnawaitedThreads())
    return await session.call(name, arguments)


class _UnawaitedThreads(ThreadPoolExecutor):
    """Threads for `asyncio.to_thread` in async tools. Ctrl-C does not wait for them."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().shutdown(wait=False, cancel_futures=True)


def _as_json(result: ToolResult) -> dict[str, object]:
    return {
        "name": result.name,
        "is_error": result.is_error,
        "error_code": result.error_code,
        "content": [dict(block) for block in result.content],
        "structured": result.structured,
    }
