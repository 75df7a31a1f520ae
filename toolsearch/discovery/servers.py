"""Which servers there are and what they are for, in a few lines for a model that does not find what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolsearch.discovery.search_arguments import LIST_SERVERS
from toolsearch.tools.summaries import one_line

MOST_WHEN_ASKED: Final = 40
MOST_UNASKED: Final = 12
_NAME_WIDTH = 64  # characters


def server_list(servers: Sequence[str], purpose_of: Callable[[str], str], *, most: int) -> str:
    """Name at most *most* of *servers*, with what each is for as far as that is known; "" for none.

    A list that is cut says how many more there are.
    """
    if not servers:
        return ""
    lines = [_line(server, purpose_of(server)) for server in servers[:most]]
    more = len(servers) - len(lines)
    hint = f", the query {LIST_SERVERS} lists more" if most < min(len(servers), MOST_WHEN_ASKED) else ""
    return "\n".join(["Tools are of these servers:", *lines, *([f"... and {more} more servers{hint}"] if more else [])])


def _line(server: str, purpose: str) -> str:
    return f"- {one_line(server, _NAME_WIDTH)}{f': {purpose}' if purpose else ''}"
