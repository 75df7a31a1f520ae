"""Lists in pages: ``?after=&limit=``. A cursor is opaque, and good for the list that it came from alone."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar, cast

from fastapi import Query, Request

from toolsearch.api.base import Page
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.refusals import bad_cursor

_Found = TypeVar("_Found")
_Body = TypeVar("_Body")

_CHECK_BYTES: Final = 8
_MAX_LIMIT: Final = 500


def make_cursor(place: str, position: str) -> str:
    """The cursor behind *position* in the list that *place* names."""
    text = position.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_check(place, text) + text).decode().rstrip("=")


def read_cursor(place: str, cursor: str) -> str:
    """Return the position; "" for the beginning, if *cursor* is "". Raises HttpRefusal for one that is not of *place*.

    The check tells damaged cursors and those of other lists. It guards no secret: a position opens no list that its
    reader could not read from the start.
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
    """Which page is asked for: at most *limit* entries behind *after*. Fetch one more, to know whether more follow."""

    place: str
    after: str
    limit: int

    @property
    def fetch(self) -> int:
        return self.limit + 1

    def page(
        self, found: Sequence[_Found], position: Callable[[_Found], str], body: Callable[[_Found], _Body]
    ) -> Page[_Body]:
        """The page of *found*, which are `fetch` entries if there are as many."""
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
