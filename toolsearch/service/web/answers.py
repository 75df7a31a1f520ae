"""Shared parts of answers: lists in pages (``?after=&limit=``), ETags, and times.

A cursor is opaque, and only valid for its own list.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from fastapi import Depends, Query, Request, Response
from starlette.exceptions import HTTPException

from toolsearch.api.base import Page
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.problems import bad_cursor, precondition_failed, precondition_required

_Found = TypeVar("_Found")
_Body = TypeVar("_Body")
_CHECK_BYTES: Final = 8
_MAX_LIMIT: Final = 500


def make_cursor(place: str, position: str) -> str:
    """The cursor behind *position* in the list that *place* names."""
    text = position.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_check(place, text) + text).decode().rstrip("=")


def read_cursor(place: str, cursor: str) -> str:
    """Return the position; "" for the beginning, if *cursor* is "". Raises HttpRefusal if it is not a cursor of
    *place*.

    The check finds damaged cursors and those of other lists. It guards no secret, since a reader of the list can read
    it from the start.
    """
    if not cursor:
        return ""
    try:
        raw = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True)
        position = raw[_CHECK_BYTES:].decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        raise bad_cursor() from None
    if not position or make_cursor(place, position) != cursor:
        raise bad_cursor()
    return position


def _check(place: str, position: bytes) -> bytes:
    return hashlib.blake2s(f"{place}\n".encode() + position, digest_size=_CHECK_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Paging:
    """The requested page: at most *limit* entries after *after*. Fetch one more, to know whether more follow."""

    place: str
    after: str
    limit: int

    @property
    def fetch(self) -> int:
        return self.limit + 1

    def page(
        self, found: Sequence[_Found], position: Callable[[_Found], str], body: Callable[[_Found], _Body]
    ) -> Page[_Body]:
        """The page from *found*, which has `fetch` entries if there are as many."""
        shown = found[: self.limit]
        following = make_cursor(self.place, position(shown[-1])) if len(found) > self.limit else None
        return Page(items=[body(each) for each in shown], next=following)


async def paging(
    request: Request,
    after: Annotated[str, Query(max_length=2_000, description="The next of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=_MAX_LIMIT, description="Entries of a page.")] = 50,
) -> Paging:
    """A dependency: the page that is asked for, of the list at the path of the request."""
    caller = cast("ServiceCaller | None", getattr(request.state, "caller", None))
    place = f"{caller.tenant if caller else ''}\n{request.url.path}"
    return Paging(place, read_cursor(place, after), limit)


_ANY: Final = "*"


# Other answers of routes that take conditions, for the OpenAPI document.
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "It is as `If-None-Match` says."}}


def etag_of(version: int | str) -> str:
    return f'"{version}"'


@dataclass(frozen=True, slots=True)
class Conditions:
    """The values of ``If-Match`` and ``If-None-Match`` of a request; empty for a missing header."""

    match: tuple[str, ...]
    none_match: tuple[str, ...]

    def over(self, version: int | None, *, is_required: bool = False) -> int | None:
        """Return the version to write over, for `RecordStore.put`: 0 if the record must be new, None for any version.
        *version* is the present version, or None without a record.

        Raises HttpRefusal if the client has seen another version, or if it must name one and does not.
        """
        if self.none_match:
            if version is not None and (_ANY in self.none_match or etag_of(version) in map(_strong, self.none_match)):
                raise precondition_failed()
            return version or 0
        if not self.match:
            if is_required:
                raise precondition_required()
            return None
        if version is None or not (_ANY in self.match or etag_of(version) in self.match):
            raise precondition_failed()
        return version

    def require(self, version: int | str) -> None:
        """Raises HttpRefusal if the client names another version than the present *version*."""
        if self.match and not (_ANY in self.match or etag_of(version) in self.match):
            raise precondition_failed()

    def tag(self, response: Response, version: int | str) -> None:
        """Give *response*, to a GET, the ETag of *version*. Raises the answer 304 if the client has that already."""
        etag = etag_of(version)
        headers = {"etag": etag, "cache-control": "private, no-cache"}
        if _ANY in self.none_match or etag in map(_strong, self.none_match):
            raise HTTPException(304, headers=headers)
        response.headers.update(headers)


async def conditions(request: Request) -> Conditions:
    return Conditions(_listed(request, "if-match"), _listed(request, "if-none-match"))


Conditional: TypeAlias = Annotated[Conditions, Depends(conditions)]


def _listed(request: Request, header: str) -> tuple[str, ...]:
    given = ",".join(request.headers.getlist(header))
    return tuple(each.strip() for each in given.split(",") if each.strip())


def _strong(etag: str) -> str:
    """To read again, a weak ETag is as good as a strong one; to write over, it is not."""
    return etag.removeprefix("W/")


def time_of(seconds: float) -> datetime:
    """*seconds* since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
