"""The OpenAPI document, also for people: FastAPI's description of the routes, with additions that it cannot know."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from toolsearch.api.base import Problem
from toolsearch.service.web.paths import API, METRICS
from toolsearch.service.web.problems import MEDIA_TYPE

TITLE: Final = "toolsearch"
SUMMARY: Final = "One service from which every agent gets its tools."

_DESCRIPTION: Final = """\
An agent that is given hundreds of tools pays for every definition on every turn, and picks worse the more it sees. This
service indexes all tools, and gives each agent a *session* that shows one search tool and what was found with it.

1. Put tools into a **catalog**: write definitions, or import them from a source.
2. Open a **session** over it, and give the agent its `mcp_url`; or ask for `tools_url`, and pass calls on yourself.
3. Look at **activity**: what was saved, what was called, and which requests found nothing.

**Who you are.** Send `Authorization: Bearer <key>`. A key belongs to a tenant, sees nothing of other tenants, and has
scopes: `search`, `call`, `feedback`, `read-catalog`, `write-catalog`, and `admin`, which includes the others.

**Errors** have one shape, `application/problem+json`. Programs go by `code`, which stays the same; `detail` says what
to do. What is not there and what you may not see are answered alike. The header `x-request-id` names the request in
the service's log.

**Lists** come in pages: give `next` of a page as `?after=`. **Writes** may carry an `Idempotency-Key`: a repetition
with the same key gets the answer of the first one. **ETags** are taken in `If-Match` and `If-None-Match`.

**Limits**: 429 says in `Retry-After` when to try again.
"""

_TAGS: Final = {
    "catalogs": "Named collections of tools, each with one index that all sessions over it share.",
    "toolsets": "Named, versioned selections from a catalog, with names and descriptions of their own.",
    "sources": "Places from which a catalog imports tools.",
    "jobs": "Imports that run behind a request, and their progress as server-sent events.",
    "approvals": "Definitions that are new, changed or suspicious, and wait for a person.",
    "search": "Searching without a session.",
    "sessions": "Endpoints with tool search, one for each agent. They show found tools from then on.",
    "calls": "Calls of tools. The service runs them, or checks them and hands them back.",
    "activity": "Usage, savings, misses, and receipts of calls without their contents.",
    "keys": "Credentials of callers.",
    "tenants": "Teams or customers. They see nothing of each other. For operators.",
    "providers": "Providers of models, and their keys.",
    "audit": "The record of changes.",
    "operations": "Health and metrics, for operators.",
}

_PROBLEMS: Final = {  # status -> the code of the example, and its meaning
    "400": ("bad_request", "The request cannot be used as it is."),
    "401": ("not_authenticated", "There is no credential, or none that is accepted."),
    "403": ("not_permitted", "The credential is not good for this."),
    "404": ("unknown_record", "There is no such thing, or none that you may see."),
    "409": ("changed_meanwhile", "It has changed meanwhile, or one of that name exists."),
    "410": ("tool_gone", "The tool was there, and is not any more."),
    "412": ("precondition_failed", "It is not as `If-Match` says."),
    "413": ("body_too_large", "The body is too large; send several smaller requests."),
    "415": ("unsupported_media_type", "The body is of no kind that is taken."),
    "421": ("unknown_host", "The request is addressed to another host."),
    "422": ("bad_request", "The request does not fit; `errors` says where."),
    "429": ("too_many", "A rate limit or a quota is used up; `Retry-After` says when to try again."),
    "500": ("internal_error", "The service has failed; its log says more, by the request's id."),
    "502": ("tool_failed", "The tool, or its server, has failed."),
    "503": ("store_unavailable", "The store or a server cannot be reached now; `Retry-After` says when to try again."),
    "504": ("request_timeout", "It took too long and was given up. It may have had its effect."),
}


# Statuses of every request that needs a key.
_ALWAYS: Final = frozenset({"401", "403", "421", "429", "500", "503", "504"})
_WITH_BODY: Final = frozenset({"400", "413", "415", "422"})
_OF_WRITES: Final = frozenset({"400", "409", "422"})  # statuses of writes, which may have an Idempotency-Key
_WAIT: Final = frozenset({"429", "503"})

_NAMING: Final = frozenset(  # the body or a parameter may name a missing thing
    {"POST /v1/calls", "POST /v1/feedback", "POST /v1/search", "POST /v1/sessions", "DELETE /v1/misses"}
)

_SCHEME: Final = "key"

_EXAMPLES: Final[dict[str, object]] = {  # examples of bodies that people send
    "NewCatalog": {"name": "office", "description": "What an office does."},
    "SearchRequest": {"queries": ["send a letter to somebody"], "catalog": "office", "limit": 3},
    "NewSession": {"catalog": "office", "pins": ["send_mail"], "ttl_s": 3600},
    "SessionSearch": {"queries": ["send a letter to somebody"]},
    "SessionCall": {"name": "send_mail", "arguments": {"to": "ann@example.com", "text": "Hello"}},
    "NewCall": {"catalog": "office", "name": "send_mail", "arguments": {"to": "ann@example.com", "text": "Hello"}},
    "NewOpenApiSource": {"kind": "openapi", "name": "shop", "url": "https://shop.example.com/openapi.json"},
    "NewKey": {"name": "Ann's agent", "scopes": ["search", "call", "feedback"], "expires_in_s": 2592000},
    "NewProvider": {"api": "anthropic", "key": "sk-ant-..."},
    "NewTenant": {"name": "sales", "description": "The sales team."},
}


def operation_id(route: APIRoute) -> str:
    """An id such as ``catalogs_create`` or ``sessions_end_turn``."""
    tag = str(route.tags[0]) if route.tags else ""
    name = "list" if route.name in ("page", f"list_{tag}") else route.name
    return name if name == tag or not tag else f"{tag}_{name}"


def use_document(app: FastAPI) -> None:
    """Let *app* serve the document; it is made when it is first asked for."""

    def document() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=TITLE,
        version=_version(),
        summary=SUMMARY,
        description=_DESCRIPTION,
        routes=app.routes,
        servers=[{"url": "/", "description": "The service that you have this document from."}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    operations = list(_operations(made))
    used = {tag for _, _, operation in operations for tag in operation.get("tags", ())}
    made["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items() if name in used]
    components = made["components"]
    schemas: dict[str, Any] = components["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema(mode="serialization")
    for name, example in _EXAMPLES.items():
        if name in schemas:
            schemas[name]["examples"] = [example]
    components["responses"] = {status: _problem(status, *told) for status, told in _PROBLEMS.items()}
    components["securitySchemes"] = {
        _SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the identity provider."}
    }
    for path, method, operation in operations:
        _complete(path, method, operation)
    return made


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    is_open = not (path.startswith(API) or path == METRICS)
    operation["security"] = [] if is_open else [{_SCHEME: []}]
    answers = {status: answer for status, answer in operation["responses"].items() if status != "422"}
    if not is_open:
        statuses = _ALWAYS.union(*_more(path, method, operation))
        answers |= {status: {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}
    operation["responses"] = answers


def _more(path: str, method: str, operation: dict[str, Any]) -> Iterator[Collection[str]]:
    """The other statuses of an operation's answers. Each is listed, since a default would hide them."""
    tags = set(operation.get("tags", ()))
    if "requestBody" in operation:
        yield _WITH_BODY
    if "{" in path or f"{method.upper()} {path}" in _NAMING:
        yield {"404"}
    if method != "get":
        yield _OF_WRITES
    elif path.startswith("/v1/sessions/{session}/"):  # these requests record what the session was sent
        yield {"409"}
    if operation.get("parameters"):
        yield {"422"}
    if any(parameter["in"] == "query" for parameter in operation.get("parameters", ())):
        yield {"400"}
    if tags & {"catalogs", "toolsets"} and method in ("patch", "delete"):
        yield {"412"}
    if "calls" in tags:
        yield {"410", "502"}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _problem(status: str, code: str, description: str) -> dict[str, Any]:
    answer = _response(description)
    example: dict[str, Any] = {
        "type": "about:blank",
        "status": int(status),
        "code": code,
        "detail": _plain(description),
        "errors": [],
    }
    answer["content"][MEDIA_TYPE]["example"] = {"title": description.partition(".")[0], **example}
    if status in _WAIT:
        answer["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return answer


def _response(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _plain(text: str) -> str:
    return re.sub("`", "", text)


def _version() -> str:
    try:
        return version("toolsearch")
    except PackageNotFoundError:
        return "0"
