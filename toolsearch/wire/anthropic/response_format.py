"""An answer of a schema, as Messages is asked for one."""

from __future__ import annotations

from typing import Any

from toolsearch.tools.json_types import JsonObject


def write_response_format(schema: JsonObject) -> dict[str, Any]:
    """The part of a request that says it; *schema* is as the SDK's ``transform_schema`` makes it."""
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
