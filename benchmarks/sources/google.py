"""One tool for each method of each Google API, from the discovery documents inside google-api-python-client."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.sources.prose import prose
from benchmarks.sources.schema import DESCRIPTION_CHARS, MAX_DEPTH, Schema, bounded
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import all_namespaced


def google_tools(documents: Path) -> Iterator[ToolDefinition]:
    """Read each ``<api>.<version>.json``; a method that several versions have is taken from the newest stable one."""
    seen: set[str] = set()
    for path in sorted(documents.glob("*.json"), key=_newest_stable_first):
        document = json.loads(path.read_bytes())
        methods = {method["id"]: method for method in _methods(document) if "id" in method}
        own_names: defaultdict[str, list[str]] = defaultdict(list)
        for each in methods:
            own_names[_api(each)].append(_own_name(each))
        names = {api: all_namespaced(f"google_{api}", own) for api, own in own_names.items()}
        for each, method in methods.items():
            if each not in seen:
                seen.add(each)
                yield _tool(names[_api(each)][_own_name(each)], method, document)


def _newest_stable_first(path: Path) -> tuple[bool, list[int], str]:
    version = path.stem.partition(".")[2]
    return "alpha" in version or "beta" in version, [-int(digits) for digits in re.findall(r"\d+", version)], path.name


def _methods(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from resource.get("methods", {}).values()
    for nested in resource.get("resources", {}).values():
        yield from _methods(nested)


def _api(method_id: str) -> str:
    return method_id.partition(".")[0]


def _own_name(method_id: str) -> str:
    return method_id.partition(".")[2]


def _tool(name: str, method: Mapping[str, Any], document: Mapping[str, Any]) -> ToolDefinition:
    api = _api(method["id"])
    return ToolDefinition(
        name=name,
        description=prose(method.get("description", ""), DESCRIPTION_CHARS),
        input_schema=_input_schema(method, document.get("schemas", {})),
        server=f"google_{api}",
        tags=("google", document.get("title", api)),
    )


def _input_schema(method: Mapping[str, Any], schemas: Mapping[str, Any]) -> Schema:
    """Parameters of path and query by name; the request's body, where there is one, as ``body``."""

    def resolve(reference: str) -> Mapping[str, Any]:
        shape: Mapping[str, Any] = schemas.get(reference, {})
        return shape

    parameters = method.get("parameters", {})
    schema: Schema = {
        "type": "object",
        "properties": {name: bounded(parameter, resolve) for name, parameter in parameters.items()},
    }
    if "request" in method:
        schema["properties"]["body"] = bounded(method["request"], resolve, MAX_DEPTH - 1)
    if required := [name for name, parameter in parameters.items() if parameter.get("required") is True]:
        schema["required"] = required
    return schema
