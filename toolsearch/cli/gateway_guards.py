"""Rules about a single server that a client keeps outside the server's entry: they would not hold for the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolsearch.cli.gateway_clients import KnownClient
from toolsearch.cli.gateway_config_text import JsonText
from toolsearch.cli.gateway_file_changes import text_of
from toolsearch.documents.json_values import as_texts, is_object
from toolsearch.errors import SourceError
from toolsearch.tools.definition import legal_name
from toolsearch.tools.json_types import Json


def rule_about(client: KnownClient, server: str) -> str:
    """Why *server* is better left to *client*: where it has a rule about it; "" if there is none."""
    about = re.compile(rf"(?:mcp__?)?(?:{re.escape(server)}|{re.escape(legal_name(server))})(?=$|[_*.(:])")
    for path, keys in client.guards:
        try:
            value: Json = JsonText().document(text_of(path)) if path.is_file() else None
        except (OSError, UnicodeDecodeError, SourceError) as error:
            return f"{path} may have rules about it, but cannot be read: {error}"
        for key in keys:
            value = value.get(key) if is_object(value) else None
        if any(map(about.match, _names(value))):
            return (
                f"{'.'.join(keys)!r} of {path} names it, and would not hold for the gateway; "
                "say it in 'rules' of the gateway's file first, and take it out there"
            )
    return ""


def _names(value: Json) -> Iterator[str]:
    """The items of a list, and the keys of an object and of those in it, but not what they allow."""
    yield from as_texts(value)
    if is_object(value):
        for key, inner in value.items():
            if inner not in (True, "allow"):
                yield key
                yield from _names(inner)
