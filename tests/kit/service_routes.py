"""Every operation of the service, out of its own OpenAPI document, and a request for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2
from fastapi import FastAPI
from starlette.routing import Route

from toolsearch.service.app import ROUTERS
from toolsearch.service.pages.frame import ROOT

_METHODS = ("get", "put", "post", "patch", "delete")

# Bodies of which a schema does not say enough to make one that is accepted.
_BODIES: dict[tuple[str, str], Any] = {
    ("post", "/v1/catalogs/{catalog}/tools"): [{"name": "new_tool", "description": "Something new."}],
    ("patch", "/v1/catalogs/{catalog}"): {"description": "Other words."},
    ("patch", "/v1/catalogs/{catalog}/tools/{tool}"): {"description": "Other words."},
    ("post", "/v1/catalogs/{catalog}/sources"): {"kind": "listing", "name": "new-source", "document": []},
    ("put", "/v1/catalogs/{catalog}/sources/{source}/document"): [],
    ("post", "/v1/sessions/{session}/execute"): {
        "reply": {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "made_up", "input": {}}]}
    },
    ("patch", "/v1/toolsets/{toolset}"): {"description": "Other words."},
    # An address that is asked of no name server.
    ("post", "/v1/providers"): {"api": "openai", "base_url": "https://93.184.215.14", "key": "made-up"},
    ("post", "/v1/feedback"): {"query": "count", "outcome": "right", "tool": "made_up", "catalog": "made-up"},
    ("post", "/v1/search"): {"queries": ["count"], "catalog": "made-up"},
}


_ASKED = {"q": "count", "corpus": "catalog/default", "tool": "made_up", "strategy": "hybrid"}  # of the playground
_FORM: dict[str, Any] = {
    "name": "made-up",
    "description": "Other words.",
    "kind": "listing",
    "document": "[]",
    "server": "made-up",
    "pin": "made-up",
    "scope": ["search"],
    "by": "json",
    "json": "{}",
    "find": "z",
    "find-catalog": "default",
    "tools": "1",
    "tool.0.catalog": "default",
    "rules": "1",
    "rule.0.catalog": "default",
    "rule.0.allow": "*",
    "over": "1",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """*parameters* are those of its path; *body* is None if it takes none."""

    method: str
    path: str
    parameters: tuple[str, ...]
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def url(self, ids: Mapping[str, str]) -> str:
        """Raises KeyError for a parameter that *ids* does not know."""
        return self.path.format(**{name: quote(ids[name], safe="") for name in self.parameters})

    def body_with(self, ids: Mapping[str, str]) -> Any:
        """The body, with *ids* where it names something."""
        if not isinstance(self.body, dict):
            return self.body
        return {name: ids.get(name, value) if isinstance(value, str) else value for name, value in self.body.items()}


def operations(app: FastAPI) -> list[Operation]:
    """Those under ``/v1``."""
    document = app.openapi()
    found = []
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods and path.startswith("/v1"):
                said = methods[method]
                parameters = tuple(each["name"] for each in said.get("parameters", []) if each["in"] == "path")
                content = said.get("requestBody", {}).get("content", {}).get("application/json")
                body = _BODIES.get((method, path), _sample(content["schema"], document) if content else None)
                found.append(Operation(method, path, parameters, body))
    return found


@dataclass(frozen=True, slots=True)
class PageOperation:
    """A page, or a form of one."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    async def asked(self, browser: httpx2.AsyncClient, token: str, ids: Mapping[str, str]) -> list[httpx2.Response]:
        """The answers; a form is sent once for each of its buttons."""
        name = ids["toolset"] if "/toolsets/" in self.path else ids["catalog"]
        rest = dict.fromkeys(("recorded_id", "path", "server"), "made-up")
        named = {"name": name, "job_id": ids["job"], "kind": "catalog", **rest}
        path = self.path.replace("{path:path}", "{path}").format(**{**ids, **named})
        if self.method == "GET":
            return [await browser.get(path, params=_ASKED if "/playground" in path else None)]
        forms: list[dict[str, Any]] = [
            {**_FORM, "form_token": token, "do": do, "tool.0.tool": ids["tool"]} for do in ("find", "preview", "apply")
        ]
        return [await browser.post(path, data=form) for form in forms]


def page_operations() -> list[PageOperation]:
    """All but those to sign in and out."""
    pages = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
    found = [PageOperation(method, f"{ROOT}{page.path}") for page in pages for method in page.methods or ()]
    return [each for each in found if not each.path.endswith(("/sign-in", "/sign-out", "/theme"))]


def undocumented(app: FastAPI) -> set[str]:
    """Paths that are not in the OpenAPI document, pages left out."""
    return {route.path for route in app.routes if isinstance(route, Route) and not route.path.startswith("/pages")}


def _sample(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """Something small that fits; every property that a caller may name something by is there."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _sample(schema[choice][0], document)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    return _of_type(schema, document)


def _of_type(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            return dict(_properties(schema, document))
        case "array":
            return [_sample(schema["items"], document)] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "made-up"


def _properties(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, property_schema in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or name in NAMED:
            yield name, _sample(property_schema, document)


NAMED = frozenset({"catalog"})  # what bodies name things of a tenant by; a toolset stands in place of a catalog
