"""One tool for each operation of GitHub's REST API, from its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.sources.prose import prose
from benchmarks.sources.schema import DESCRIPTION_CHARS, PARAMETER_CHARS, Schema, bounded
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import all_namespaced, title_with_name

_SERVER = "github"
_METHODS = ("get", "put", "post", "delete", "patch")


def github_tools(document: Path) -> Iterator[ToolDefinition]:
    api = json.loads(document.read_bytes())
    operations = [path[method] for path in api["paths"].values() for method in _METHODS if method in path]
    names = all_namespaced(_SERVER, [operation["operationId"] for operation in operations])
    for operation in operations:
        yield _tool(names[operation["operationId"]], operation, api)


def _tool(name: str, operation: Mapping[str, Any], api: Mapping[str, Any]) -> ToolDefinition:
    summary, description = operation.get("summary", ""), operation.get("description", "")
    return ToolDefinition(
        name=name,
        title=title_with_name(summary, operation["operationId"], _SERVER),
        description=prose(f"{summary}. {description}", DESCRIPTION_CHARS),
        input_schema=_input_schema(operation, api),
        server=_SERVER,
        tags=(_SERVER, *operation.get("tags", ())),
    )


def _input_schema(operation: Mapping[str, Any], api: Mapping[str, Any]) -> Schema:
    """Parameters of path and query beside the properties of a JSON body, which no operation names alike."""

    def resolve(reference: str) -> Mapping[str, Any]:
        target = api
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        return target

    content = operation.get("requestBody", {}).get("content", {})
    schema: Schema = {"type": "object", "properties": {}, "required": []}
    for given in operation.get("parameters", ()):
        parameter = resolve(given["$ref"]) if "$ref" in given else given
        described = bounded(parameter.get("schema", {}), resolve)
        schema["properties"][parameter["name"]] = described | {
            "description": prose(parameter.get("description", ""), PARAMETER_CHARS)
        }
        if parameter.get("required"):
            schema["required"].append(parameter["name"])
    if body := content.get("application/json", {}).get("schema"):
        fields = bounded(body, resolve)
        schema["properties"] |= fields.get("properties", {})
        schema["required"] += fields.get("required", [])
    return schema
