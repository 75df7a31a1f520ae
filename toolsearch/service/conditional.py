"""ETags: a client reads a thing again only if it was changed, and does not write over what it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Request, Response
from starlette.exceptions import HTTPException

from toolsearch.service.refusals import precondition_failed, precondition_required

_ANY: Final = "*"

# What answers of routes that take conditions may be besides, for the OpenAPI document.
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "It is as `If-None-Match` says."}}


def etag_of(version: int | str) -> str:
    return f'"{version}"'


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ``If-Match`` and ``If-None-Match`` of a request say; empty for a header that is missing."""

    match: tuple[str, ...]
    none_match: tuple[str, ...]

    def over(self, version: int | None, *, is_required: bool = False) -> int | None:
        """Return what a record may be written over, as `RecordStore.put` takes it: 0 for what must be new, None for
        whatever is there. *version* is of what is there now; None: nothing is.

        Raises HttpRefusal if that is not what the client has seen, or if it must say so and does not.
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
        """Raises HttpRefusal if what is there now, *version*, is not what the client has seen, as far as it says so."""
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
