"""``toolsearch call``: run one tool in the same way as a model's call."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption
from toolsearch.cli.output import print_error, print_json, print_text
from toolsearch.errors import BadArgumentsError

if TYPE_CHECKING:
    from toolsearch.session import Session
    from toolsearch.tools.calls import ToolResult


def call(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[
        str, typer.Argument(metavar="ARGS", help="A JSON object, @FILE with one, or - to read it from stdin.")
    ] = "{}",
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Call a tool and print its result. Of MCP servers, only the tool's own one is started.

    What a tool itself prints goes to stderr. Exit code 1 if the tool fails, 2 if the arguments do not fit.
    """
    from toolsearch.access.reach import Reach

    text = _read(arguments)
    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        engine.view(Reach()).get(name)
        with redirect_stdout(sys.stderr):
            result = asyncio.run(_call(engine.session("command line"), name, text))
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


async def _call(session: Session, name: str, arguments: str) -> ToolResult:
    asyncio.get_running_loop().set_default_executor(_UnawaitedThreads())
    return await session.call(name, arguments)


class _UnawaitedThreads(ThreadPoolExecutor):
    """Threads for `asyncio.to_thread` in async tools. Ctrl-C does not wait for them."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().shutdown(wait=False, cancel_futures=True)


def _read(arguments: str) -> str:
    if arguments == "-":
        return sys.stdin.read()
    if not arguments.startswith("@"):
        return arguments
    try:
        return Path(arguments[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgumentsError(f"the arguments cannot be read from {arguments[1:]!r}: {error}") from error


def _as_json(result: ToolResult) -> dict[str, object]:
    return {
        "name": result.name,
        "is_error": result.is_error,
        "error_code": result.error_code,
        "content": [dict(block) for block in result.content],
        "structured": result.structured,
    }
