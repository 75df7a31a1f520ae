"""Signing in with an API key or a JWT, and out; the switch between light and dark.

The key is not kept: the browser gets a random token that is good for the pages alone, for a few hours, until it signs
out or the key is revoked.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import (
    PageRoute,
    SentForm,
    own_form,
    own_path,
    see_other,
    sent_with,
    text_of,
    visit_of,
)
from toolsearch.service.web.callers import VISIT_COOKIE, Visits, form_token
from toolsearch.service.web.parts import ServiceParts, service_of, the_service

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_FORM_COOKIE: Final = "toolsearch_form"  # set in browsers that are not signed in, for the tokens of their forms
_REFUSED: Final = "This key is not accepted. It may have expired or been revoked, or a part of it is missing."
_Service = Annotated[ServiceParts, Depends(the_service)]


@router.get("")
async def home(request: Request) -> Response:
    visit = await visit_of(request)
    sections = frame.sections_for(visit) if visit else []
    if visit and not sections:
        return frame.page(request, "empty.html", visit=visit)
    return see_other(sections[0].path if sections else f"{frame.ROOT}/sign-in")


@router.get("/sign-in")
async def form(request: Request, next: str = frame.ROOT) -> Response:  # noqa: A002  the name of the parameter
    return _form(request, own_path(next))


@router.post("/sign-in")
async def sign_in(request: Request, service: _Service) -> Response:
    sent = await own_form(request, form_token(request.cookies.get(_FORM_COOKIE, "")))
    go_on = own_path(text_of(sent, "next"))
    token = await service[Visits].begin(text_of(sent, "key"))
    if token is None:
        return _form(request, go_on, refused=_REFUSED)
    response = see_other(go_on)
    _set_cookie(request, response, VISIT_COOKIE, token, service.settings.serve.visit_s)
    response.delete_cookie(_FORM_COOKIE, path=frame.ROOT)
    return response


@router.post("/sign-out")
async def sign_out(service: _Service, sent: Annotated[SentForm, Depends(sent_with())]) -> Response:
    await service[Visits].end(sent.visit)
    response = see_other(f"{frame.ROOT}/sign-in")
    response.delete_cookie(VISIT_COOKIE, path=frame.ROOT)
    return response


@router.post("/theme")
async def switch_theme(request: Request) -> Response:
    """Needs no token: another site that sent it would change colours only."""
    sent = await request.form()
    response = see_other(own_path(text_of(sent, "next")))
    theme = text_of(sent, "theme")
    if theme in frame.THEMES:
        _set_cookie(request, response, frame.THEME_COOKIE, theme, 365 * 86_400)
    else:
        response.delete_cookie(frame.THEME_COOKIE, path=frame.ROOT)
    return response


def _form(request: Request, go_on: str, *, refused: str = "") -> Response:
    token = request.cookies.get(_FORM_COOKIE) or secrets.token_urlsafe(32)
    response = frame.page(
        request,
        "sign_in.html",
        status=401 if refused else 200,
        form_token=form_token(token),
        next=go_on,
        refused=refused,
    )
    _set_cookie(request, response, _FORM_COOKIE, token, 3_600)
    return response


def _set_cookie(request: Request, response: Response, name: str, value: str, age_s: float) -> None:
    public_url = service_of(request).settings.serve.public_url or ""
    is_secure = request.url.scheme == "https" or public_url.startswith("https:")
    response.set_cookie(
        name, value, max_age=int(age_s), path=frame.ROOT, secure=is_secure, httponly=True, samesite="strict"
    )
