"""The sections of a configuration of MCP servers. Nothing heavy may be imported here: a client's small process reads
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolsearch.documents.json_values import as_object, texts_in
from toolsearch.tools.json_types import Json, JsonObject

SERVERS: Final = ("mcpServers", "servers")  # the second is the name in VS Code
GATEWAY: Final = "toolsearch"  # the gateway's own settings, in a file that other clients read too
CHANGEABLE: Final = frozenset({"limits", "rules", "servers"})  # sections of these that a running gateway can change to


def gateway_section(document: Json) -> JsonObject | None:
    """The gateway's settings as they are written in *document*; None if they are no object."""
    return as_object((as_object(document) or {}).get(GATEWAY, {}))


def variables_in(value: Json) -> Iterator[str]:
    """The NAMEs of each ``${NAME}``, ``${env:NAME}`` and ``${NAME:-default}`` in a document."""
    for text in texts_in(value):
        for piece in text.split("${")[1:]:
            yield piece.partition("}")[0].removeprefix("env:").partition(":-")[0]
