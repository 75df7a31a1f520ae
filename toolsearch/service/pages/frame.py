"""Shared parts of all pages: rendering, navigation, error pages, sign-in checks and forms.

Errors are pages, too. A browser that has not signed in is sent to the sign-in page. Forms are accepted only from our
own pages.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol, TypedDict, cast
from urllib.parse import quote, urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as AsgiScope

from toolsearch.access.scopes import Scope
from toolsearch.api.keys import KeyMade
from toolsearch.errors import (
    NotAuthenticatedError,
    NotPermittedError,
    StorageError,
    ToolSearchError,
    UnknownRecordError,
    UnknownToolError,
)
from toolsearch.gateway.http_guard import is_own_page
from toolsearch.service.pages import filters
from toolsearch.service.pages.filters import Exact
from toolsearch.service.web.callers import VISIT_COOKIE, ServiceCaller, Visit, Visits
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.parts import service_of
from toolsearch.service.web.paths import PAGES
from toolsearch.service.web.problems import HttpRefusal, headers_of

_HERE: Final = Path(__file__).parent
_STATIC: Final = _HERE / "static"
ROOT: Final = PAGES
THEME_COOKIE: Final = "toolsearch_theme"
THEMES: Final = ("light", "dark")


def _version_of(files: Path) -> str:
    """A version that changes whenever one of *files* does, so that browsers may cache them."""
    parts = [file.read_bytes() for file in sorted(files.iterdir()) if file.is_file()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


STATIC_PATH: Final = f"{ROOT}/static/{_version_of(_STATIC)}"


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the navigation, for visitors whose key has *scope*."""

    path: str
    title: str
    icon: str
    scope: Scope
    is_about_all: bool = False  # True hides it from keys with rules
    is_for_operators: bool = False

    def is_for(self, caller: ServiceCaller) -> bool:
        within_reach = not self.is_about_all
        try:
            caller.admit((self.scope,), within_reach=within_reach, is_for_operators=self.is_for_operators)
        except (NotPermittedError, HttpRefusal):
            return False
        return True


SECTIONS: Final = (
    Section(f"{ROOT}/playground", "Playground", "search", "search"),
    Section(f"{ROOT}/catalogs", "Catalogs", "catalog", "read-catalog"),
    Section(f"{ROOT}/toolsets", "Toolsets", "toolset", "read-catalog"),
    Section(f"{ROOT}/imports", "Imports", "import", "read-catalog", is_about_all=True),
    Section(f"{ROOT}/approvals", "Approvals", "shield", "read-catalog"),
    Section(f"{ROOT}/logins", "Logins", "leave", "call"),
    Section(f"{ROOT}/sessions", "Sessions", "session", "search"),
    Section(f"{ROOT}/usage", "Usage", "chart", "search"),
    Section(f"{ROOT}/misses", "Misses", "miss", "read-catalog", is_about_all=True),
    Section(f"{ROOT}/receipts", "Receipts", "receipt", "call"),
    Section(f"{ROOT}/audit", "Audit", "audit", "admin", is_about_all=True),
    Section(f"{ROOT}/keys", "Keys", "key", "admin"),
    Section(f"{ROOT}/tenants", "Tenants", "tenant", "admin", is_about_all=True, is_for_operators=True),
)


def sections_for(visit: Visit) -> list[Section]:
    return [each for each in SECTIONS if each.is_for(visit.caller)]


class KeptFiles(StaticFiles):
    """Static files under a path that changes with them."""

    def __init__(self) -> None:
        super().__init__(directory=_STATIC)

    async def get_response(self, path: str, scope: AsgiScope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def icon(name: str) -> Markup:
    """An icon out of ``static/icons.svg``. It only repeats the text beside it."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}/icons.svg#{}"></use></svg>').format(
        STATIC_PATH, name
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=filters.shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(filters.FILTERS)
    return made


ENVIRONMENT: Final = _environment()  # the environment of all templates
_GLOBALS: Final[dict[str, Any]] = {"static": STATIC_PATH, "icon": icon, "root": ROOT}


def page(
    request: Request, template: str, *, visit: Visit | None = None, status: int = 200, **values: object
) -> HTMLResponse:
    """Render *template* with *values* and the values of its frame."""
    theme = request.cookies.get(THEME_COOKIE, "")
    text = ENVIRONMENT.get_template(template, globals=_GLOBALS).render(
        visit=visit,
        sections=sections_for(visit) if visit else [],
        path=request.url.path,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        theme=theme if theme in THEMES else "",
        **values,
    )
    return HTMLResponse(text, status, headers={"cache-control": "no-store"})


logger = logging.getLogger(__name__)
MOST_FIELDS: Final = 4_000  # fields of a form
_NOTHING_HERE = (404, "Nothing here", "There is no such page, or your key does not allow you to see it.")


class PageRoute(APIRoute):
    """A route whose errors are pages. Unknown and forbidden pages look the same.

    A browser that comes from another site does not show who has signed in with it: the cookie is strict. It is asked
    to come again from a page of ours.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except NotAuthenticatedError:
                if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
                    return page(request, "again.html")
                return see_other(f"{ROOT}/sign-in?next={quote(_asked(request))}")
            except (ToolSearchError, RequestValidationError, HTTPException) as error:
                told = await error_page(request, *_told(error))
                told.headers.update(headers_of(error) if isinstance(error, ToolSearchError) else {})
                return told

        return handled


def _asked(request: Request) -> str:
    """The page to show after signing in. Forms are not sent again."""
    if request.method != "GET":
        return ROOT
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


async def error_page(request: Request, status: int, title: str, detail: str) -> Response:
    """Without the visitor's navigation, if the store cannot say who that is."""
    visit = None
    with suppress(StorageError):
        visit = await visit_of(request)
    return page(request, "error.html", visit=visit, status=status, title=title, detail=detail)


def _told(error: ToolSearchError | RequestValidationError | HTTPException) -> tuple[int, str, str]:
    """The status, the title and the text for *error*."""
    if isinstance(error, (UnknownRecordError, UnknownToolError, NotPermittedError)):
        return _NOTHING_HERE
    if isinstance(error, ToolSearchError):
        return error.status, HTTPStatus(error.status).phrase, str(error)
    if isinstance(error, HTTPException):
        return error.status_code, HTTPStatus(error.status_code).phrase, str(error.detail)
    return 422, "This cannot be read", "A part of the address or of the form is missing or of the wrong kind."


def see_other(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303, headers={"cache-control": "no-store"})


def own_path(path: str) -> str:
    """Return *path* if it is a page's, otherwise the first page, so that nobody is sent to another site."""
    is_own = path.startswith(f"{ROOT}/") and path.isprintable() and "\\" not in path
    return path if is_own else ROOT


async def visit_of(request: Request) -> Visit | None:
    """Who has signed in with the browser that sends *request*."""
    return await service_of(request)[Visits].find(request.cookies.get(VISIT_COOKIE, ""))


def visit_with(
    *scopes: Scope, within_reach: bool = False, is_for_operators: bool = False
) -> Callable[[Request], Awaitable[Visit]]:
    """Make a dependency that gives the visit of a browser whose key `ServiceCaller.admit` has admitted."""

    async def visit(request: Request) -> Visit:
        found = await visit_of(request)
        if found is None:
            raise NotAuthenticatedError
        request.state.caller, request.state.needed_scopes = found.caller, scopes  # the audit reads both
        await service_of(request)[Limits].request(found.caller)
        found.caller.admit(scopes, within_reach=within_reach, is_for_operators=is_for_operators)
        return found

    return visit


@dataclass(frozen=True, slots=True)
class SentForm:
    """A form that a page of this service has sent."""

    visit: Visit
    form: FormData

    def text(self, name: str) -> str:
        """The field *name*, without white space around it; "" if it was not sent."""
        return text_of(self.form, name)

    def exact(self, name: str) -> str:
        """The field *name* as it was sent, with line feeds alone for the ends of its lines."""
        value = cast("object", self.form.get(name))
        return value.replace("\r\n", "\n") if isinstance(value, str) else ""

    def typed(self, *names: str) -> dict[str, Exact]:
        """The contents of the fields *names*, for showing the form again."""
        return {name: Exact(self.text(name)) for name in names}


class FormOutcome(TypedDict, total=False):
    """What became of a form: *refused* says why it was not taken, *sent* is shown again, *made* is the new key."""

    refused: str
    sent: SentForm
    made: KeyMade


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


def page_with_form(
    request: Request,
    template: str,
    *,
    visit: Visit,
    listed: Sequence[_HasId],
    limit: int,
    fields: Sequence[str],
    outcome: FormOutcome,
    **values: object,
) -> HTMLResponse:
    """Render a list, of which at most *limit* are *listed*, and the form for one more, with its *fields* for texts."""
    sent, refused = outcome.get("sent"), outcome.get("refused", "")
    return page(
        request,
        template,
        visit=visit,
        status=422 if refused else 200,
        next=listed[-1].id if len(listed) == limit else "",
        given=sent.typed(*fields) if sent else dict.fromkeys(fields, ""),
        refused=refused,
        made=outcome.get("made"),
        **values,
    )


def sent_with(
    *scopes: Scope, within_reach: bool = False, is_for_operators: bool = False
) -> Callable[[Request], AsyncGenerator[SentForm]]:
    """Make a dependency that gives the form of a browser whose key `ServiceCaller.admit` has admitted.

    Raises HTTPException (403) if the form was not on a page of this service.
    """
    visiting = visit_with(*scopes, within_reach=within_reach, is_for_operators=is_for_operators)

    async def sent(request: Request) -> AsyncGenerator[SentForm]:
        visit = await visiting(request)
        try:
            yield SentForm(visit, await own_form(request, visit.form_token))
        finally:
            await request.close()  # closes the uploaded files, too

    return sent


async def own_form(request: Request, token: str) -> FormData:
    """Return the form of *request*. Raises HTTPException (403) unless it comes from this service and holds *token*."""
    most_bytes = service_of(request).settings.serve.max_body_bytes
    form = await request.form(max_fields=MOST_FIELDS, max_part_size=most_bytes)
    given = text_of(form, "form_token")
    if not _is_own_origin(request) or not hmac.compare_digest(given.encode(), token.encode()):
        logger.warning("a form was refused: it was not on a page of this service")
        raise HTTPException(403, "This form has expired. Go back, load the page again, and send it once more.")
    return form


def _is_own_origin(request: Request) -> bool:
    """Whether the form was on our own site: browsers name the site with each form."""
    public_url = service_of(request).settings.serve.public_url
    return is_own_page(request, [urlsplit(public_url).netloc] if public_url else [])


def what_is_wrong(error: ValidationError) -> str:
    """A sentence for each field of a form that does not fit."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())


def text_of(form: FormData, name: str) -> str:
    value = cast("object", form.get(name))
    return value.strip() if isinstance(value, str) else ""
