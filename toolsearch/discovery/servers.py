"""Which servers there are and what they are for, in a few lines for a model that does not find what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolsearch.discovery.search_arguments import LIST_SERVERS
from toolsearch.tools.summaries import one_line

MOST_WITH_PURPOSE: Final = 40
MOST_UNASKED: Final = 12
MOST_NAMES: Final = (400, 100, 20)  # tried in turn until an answer fits
_NAME_WIDTH = 64  # characters


def every_server(servers: Sequence[str], purpose_of: Callable[[str], str], *, serverless: int) -> list[str]:
    """All of *servers*, in forms of decreasing length: with what the first are for, and the names alone.

    *serverless* is how many tools are of no server. Of very many servers the last are only counted, with how to get at
    them.
    """
    if not servers:
        return ["No tool here is of a named server."]
    rest = _serverless(serverless)
    told = list(map(_line, servers[:MOST_WITH_PURPOSE], map(purpose_of, servers[:MOST_WITH_PURPOSE])))
    others = named(servers[MOST_WITH_PURPOSE:], MOST_NAMES[0])
    full = ["Tools are of these servers:", *told, *([f"And of these: {others}"] if others else []), rest]
    names = (f"Tools are of these servers: {named(servers, most)}" for most in MOST_NAMES)
    return ["\n".join(filter(None, full)), *("\n".join(filter(None, [each, rest])) for each in names)]


def some_servers(servers: Sequence[str], purpose_of: Callable[[str], str], *, serverless: int) -> str:
    """The first of *servers*, for a model that has not asked for them; "" for none."""
    if not servers:
        return ""
    lines = list(map(_line, servers[:MOST_UNASKED], map(purpose_of, servers[:MOST_UNASKED])))
    more = len(servers) - len(lines)
    hint = f"... and {more} more servers, the query {LIST_SERVERS} lists all" if more else ""
    return "\n".join(filter(None, ["Tools are of these servers:", *lines, hint, _serverless(serverless)]))


def named(servers: Sequence[str], most: int) -> str:
    """The first *most* names in their order, and how to get at the others; "" for none."""
    shown = ", ".join(one_line(server, _NAME_WIDTH) for server in servers[:most])
    more = len(servers) - most
    return (
        f"{shown} and {more} more (the query {LIST_SERVERS}TEXT lists those with TEXT in their name)"
        if more > 0
        else shown
    )


def _serverless(count: int) -> str:
    if not count:
        return ""
    return f"{count:,} tools are of no server." if count > 1 else "One tool is of no server."


def _line(server: str, purpose: str) -> str:
    return f"- {one_line(server, _NAME_WIDTH)}{f': {purpose}' if purpose else ''}"
