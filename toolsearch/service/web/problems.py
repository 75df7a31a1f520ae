"""One shape for all errors: ``application/problem+json`` with a stable code and a remedy.

The refusals that concern HTTP alone come first.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from http import HTTPMethod, HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Receive, Scope, Send

from toolsearch.api.base import Problem
from toolsearch.api.providers import ModelApi
from toolsearch.errors import (
    NotAuthenticatedError,
    StorageError,
    ToolNotHereError,
    ToolSearchError,
    TooManyError,
    text_for_model,
)
from toolsearch.service.web.paths import is_mcp, model_api
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.anthropic import proxied as anthropic
from toolsearch.wire.mcp.requests import ERROR_CODE
from toolsearch.wire.openai_chat import proxied as openai


class HttpRefusal(HTTPException):
    """A refusal of a request in its present form. *detail* says what to do."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.code = code


def bad_request(detail: str) -> HttpRefusal:
    return HttpRefusal(400, "bad_request", detail)


def bad_cursor() -> HttpRefusal:
    return HttpRefusal(
        400, "bad_cursor", "after must be the next of an earlier page of this same list; leave it out to start anew"
    )


def precondition_failed() -> HttpRefusal:
    return HttpRefusal(
        412,
        "precondition_failed",
        "somebody has changed it since; read it again, and repeat the request with the new ETag in If-Match",
    )


def precondition_required() -> HttpRefusal:
    return HttpRefusal(
        428,
        "precondition_required",
        "the header If-Match is missing; send the ETag of the version that you have read, or * for any version",
    )


def too_large(max_bytes: int) -> HttpRefusal:
    return HttpRefusal(
        413,
        "body_too_large",
        f"the body has more than {max_bytes:,} bytes; send several smaller requests",
        {"connection": "close"},
    )


def unsupported_media(accepted: str) -> HttpRefusal:
    return HttpRefusal(415, "unsupported_media_type", f"name the type of the body in Content-Type: {accepted}")


def timed_out(seconds: float) -> HttpRefusal:
    return HttpRefusal(
        504,
        "request_timeout",
        f"the request took more than {seconds:g} s and was given up; look whether it has had its effect",
    )


def same_time() -> HttpRefusal:
    return HttpRefusal(
        409,
        "idempotency_in_progress",
        "another request with this Idempotency-Key is still running; wait, and send it again",
        {"retry-after": "1"},
    )


def other_request() -> HttpRefusal:
    return HttpRefusal(
        422, "idempotency_mismatch", "this Idempotency-Key was used for another request; make a new key for each"
    )


def outcome_lost() -> HttpRefusal:
    return HttpRefusal(
        409,
        "idempotency_unknown",
        "a request with this Idempotency-Key was begun, and its answer is lost; look at its outcome, and repeat it "
        "with a new key if you still need it",
    )


def tool_of_source(name: str, source: str) -> HttpRefusal:
    return HttpRefusal(
        409,
        "tool_of_source",
        f"the tool {name!r} belongs to the source {source!r}, whose next import would write it again; change it there, "
        "or give it a name or a description of its own in a toolset",
    )


def operators_only(what: str) -> HttpRefusal:
    return HttpRefusal(403, "operators_only", f"only an operator's key may add {what}")


def no_provider(api: ModelApi) -> HttpRefusal:
    return HttpRefusal(
        404, "no_provider", f"the tenant has no provider for {api}; an administrator adds one with POST /v1/providers"
    )


def last_operator() -> HttpRefusal:
    return HttpRefusal(
        409,
        "last_operator",
        "this is the last operator's key, so it cannot be revoked; make another operator's key first",
    )


def whole_reach_needed() -> HttpRefusal:
    return HttpRefusal(
        403, "whole_reach_needed", "this request is about all tools; use a key whose rules allow all of them"
    )


logger = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"
_PASSING: Final = frozenset({429, 503})
_INTERNAL_ERROR: Final = -32603  # JSON-RPC's code for internal errors
_NO_BODY: Final = frozenset({204, 304})
_ERROR_BODIES: Final[Mapping[ModelApi, Callable[[str, str, int], JsonObject]]] = {
    "anthropic": anthropic.error_body,
    "openai": openai.error_body,
}


class ProblemResponse(Response):
    """It notes its code beside the request, for the log and the metrics. A client of a model API is told in the shape
    of that API, which its SDK reads.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        content: str,
        status: int,
        headers: Mapping[str, str] | None,
        media_type: str = MEDIA_TYPE,
    ) -> None:
        super().__init__(content, status, headers, media_type)
        self._code, self._detail = code, detail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["problem"] = self._code
        if (api := model_api(scope)) is None:
            await super().__call__(scope, receive, send)
            return
        told = _ERROR_BODIES[api](self._detail, self._code, self.status_code)
        headers = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
        await JSONResponse(told, self.status_code, headers)(scope, receive, send)


def problem(
    *,
    status: int,
    code: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request that failed."""
    title = HTTPStatus(status).phrase
    body = Problem(title=title, status=status, code=code, detail=detail, errors=errors or [])
    return ProblemResponse(code, detail, body.model_dump_json(), status, headers)


def answer_to(error: Exception, path: str) -> Response:
    """The answer for *error* to a request for *path*."""
    if is_mcp(path) and isinstance(error, ToolSearchError) and error.status in _PASSING:
        _log(error)
        text = text_for_model(error)
        told = {"code": _INTERNAL_ERROR, "message": text, "data": {ERROR_CODE: error.code}}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": told})
        return ProblemResponse(error.code, text, body, error.status, headers_of(error), "application/json")
    return problem_of(error)


def problem_of(error: Exception) -> Response:
    """The problem document for *error*. An unforeseen error is logged, and its answer shows no details."""
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        return _of_http(error)
    if isinstance(error, ToolSearchError):
        _log(error)
        detail = text_for_model(error) if _is_for_the_operator(error) else str(error)
        return problem(status=error.status, code=error.code, detail=detail, headers=headers_of(error))
    logger.error("a request failed unexpectedly: %s", type(error).__name__, exc_info=error)
    return problem(
        status=500, code="internal_error", detail="the service has failed; its log says more, by the request's id"
    )


def add_problem_handlers(app: FastAPI) -> None:
    for kind in (ToolSearchError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    answer = answer_to(error, request.url.path)
    if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _methods_of(request)):
        answer.headers["allow"] = ", ".join(methods)
    return answer


def _methods_of(request: Request) -> list[str]:
    """Every method that is allowed for the path of *request*. A single route knows only its own.

    Mounted applications answer for themselves.
    """
    routes: list[BaseRoute] = [each for each in request.app.routes if not isinstance(each, Mount)]
    scopes = {method.value: {**request.scope, "method": method.value} for method in HTTPMethod}
    return [method for method, scope in scopes.items() if any(each.matches(scope)[0] is Match.FULL for each in routes)]


def _of_validation(error: RequestValidationError) -> Response:
    errors = [{"field": ".".join(map(str, each["loc"])), "message": str(each["msg"])} for each in error.errors()]
    return problem(status=422, code="bad_request", detail="the request does not fit; see errors", errors=errors)


def _of_http(error: HTTPException) -> Response:
    if error.status_code in _NO_BODY:
        return Response(None, error.status_code, error.headers)
    phrase = HTTPStatus(error.status_code).phrase
    code = error.code if isinstance(error, HttpRefusal) else phrase.lower().replace(" ", "_").replace("-", "_")
    return problem(status=error.status_code, code=code, detail=str(error.detail), headers=error.headers)


def _is_for_the_operator(error: ToolSearchError) -> bool:
    """Whether its message may name files of this machine, so that it is only logged."""
    return isinstance(error, StorageError) and error.status >= 500 and error.retry_after_s is None


def _log(error: ToolSearchError) -> None:
    """The store itself logs that it is away, once, and not with each request."""
    is_away = isinstance(error, StorageError) and error.retry_after_s is not None
    if error.status >= 500 and not is_away:
        logger.warning("a request failed: %s: %s", error.code, error)


def headers_of(error: ToolSearchError) -> dict[str, str]:
    if isinstance(error, NotAuthenticatedError):
        return {"www-authenticate": 'Bearer realm="toolsearch"'}
    if isinstance(error, TooManyError | StorageError | ToolNotHereError) and error.retry_after_s is not None:
        return {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
    return {}
