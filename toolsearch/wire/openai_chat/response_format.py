"""An answer of a schema, as Chat Completions is asked for one."""

from __future__ import annotations

from typing import Any

from toolsearch.tools.json_types import JsonObject


def write_response_format(name: str, schema: JsonObject) -> dict[str, Any]:
    """The part of a request that says it; *schema* is one that strict mode takes."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}}
