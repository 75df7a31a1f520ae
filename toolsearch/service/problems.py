"""One shape for all errors: ``application/problem+json`` with a stable code, and what to do."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from toolsearch.api.base import Problem
from toolsearch.errors import ToolSearchError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


def problem(request: Request, *, status: int, code: str, detail: str, **more: object) -> Response:
    """The answer to a request that failed."""
    body = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        request_id=getattr(request.state, "request_id", ""),
        **more,  # type: ignore[arg-type]
    )
    return Response(body.model_dump_json(exclude_defaults=False), status, media_type=MEDIA_TYPE)


def add_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ToolSearchError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _unexpected)


async def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, ToolSearchError)  # noqa: S101
    return problem(request, status=error.status, code=error.code, detail=str(error))


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = [{"field": ".".join(map(str, each["loc"])), "message": str(each["msg"])} for each in error.errors()]
    return problem(
        request, status=422, code="bad_request", detail="the request does not fit; see errors", errors=errors
    )


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return problem(request, status=error.status_code, code=code, detail=str(error.detail))


async def _unexpected(request: Request, error: Exception) -> Response:
    logger.error("a request failed unexpectedly: %s", type(error).__name__, exc_info=error)
    return problem(
        request,
        status=500,
        code="internal_error",
        detail="the service has failed; the log says more, by the request_id",
    )
