"""Why the service does not take a request, where that is a matter of HTTP alone. Each has a stable code."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException


class HttpRefusal(HTTPException):
    """An answer to a request that cannot be taken as it is. *detail* says what to do."""

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
        412, "precondition_failed", "it was changed since; read it again, and repeat with the new ETag in If-Match"
    )


def precondition_required() -> HttpRefusal:
    return HttpRefusal(
        428, "precondition_required", "send the ETag of what you have read in If-Match, or * to write over whatever is"
    )


def too_large(max_bytes: int) -> HttpRefusal:
    return HttpRefusal(
        413,
        "body_too_large",
        f"a body may have {max_bytes:,} bytes; send several smaller requests",
        {"connection": "close"},
    )


def unsupported_media(accepted: str) -> HttpRefusal:
    return HttpRefusal(415, "unsupported_media_type", f"say in Content-Type what the body is: {accepted}")


def timed_out(seconds: float) -> HttpRefusal:
    return HttpRefusal(
        504, "request_timeout", f"not done within {seconds:g} s, and given up; what was begun may have had its effect"
    )


def same_time() -> HttpRefusal:
    return HttpRefusal(
        409,
        "idempotency_in_progress",
        "a request with this Idempotency-Key has not ended; wait, and ask again",
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
        "a request with this Idempotency-Key was begun, and its answer is not known any more; look what came of it, "
        "and repeat it with a new key if it is still needed",
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


def last_operator() -> HttpRefusal:
    return HttpRefusal(
        409,
        "last_operator",
        "without this key nobody could look after the service any more; make another operator's key first",
    )


def whole_reach_needed() -> HttpRefusal:
    return HttpRefusal(403, "whole_reach_needed", "this is about all tools, and needs a key whose rules allow them all")
