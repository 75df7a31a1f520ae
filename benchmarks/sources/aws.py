"""One tool for each operation of each AWS service, from the service models inside botocore."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.sources.prose import prose
from benchmarks.sources.schema import DESCRIPTION_CHARS, MAX_DEPTH, PARAMETER_CHARS, Schema
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced

_TYPES = {
    "boolean": "boolean",
    "byte": "integer",
    "integer": "integer",
    "short": "integer",
    "long": "integer",
    "bigdecimal": "number",
    "float": "number",
    "double": "number",
    "list": "array",
    "map": "object",
    "structure": "object",
}  # all others are strings on the wire


def aws_tools(data: Path) -> Iterator[ToolDefinition]:
    """Read ``<data>/<service>/<version>/service-2.json[.gz]``; of each service the newest version."""
    for service in sorted(folder for folder in data.iterdir() if folder.is_dir()):
        models = sorted(service.glob("*/service-2.json*"))
        if models:
            yield from _service_tools(service.name, _load(models[-1]))


def _load(model: Path) -> Any:
    packed = model.read_bytes()
    return json.loads(gzip.decompress(packed) if model.suffix == ".gz" else packed)


def _service_tools(service: str, model: Mapping[str, Any]) -> Iterator[ToolDefinition]:
    shapes = model["shapes"]
    server = f"aws_{service}"
    for name, operation in model["operations"].items():
        given = operation.get("input", {}).get("shape")
        yield ToolDefinition(
            name=namespaced(server, name),
            description=prose(operation.get("documentation", ""), DESCRIPTION_CHARS),
            input_schema=_schema(shapes[given], shapes, MAX_DEPTH) if given else {"type": "object", "properties": {}},
            server=server,
            tags=("aws", model["metadata"]["serviceId"]),
        )


def _schema(shape: Mapping[str, Any], shapes: Mapping[str, Any], depth: int) -> Schema:
    schema: Schema = {"type": _TYPES.get(shape["type"], "string")}
    if "enum" in shape:
        schema["enum"] = shape["enum"]
    if shape["type"] == "structure" and depth:
        schema["properties"] = {
            name: _member(member, shapes, depth - 1) for name, member in shape.get("members", {}).items()
        }
        if shape.get("required"):
            schema["required"] = shape["required"]
    elif shape["type"] == "list" and depth:
        schema["items"] = _member(shape["member"], shapes, depth - 1)
    return schema


def _member(member: Mapping[str, Any], shapes: Mapping[str, Any], depth: int) -> Schema:
    schema = _schema(shapes[member["shape"]], shapes, depth)
    if documentation := member.get("documentation"):
        schema["description"] = prose(documentation, PARAMETER_CHARS)
    return schema
