"""The page on which each user logs in to MCP servers, sees these logins, and logs out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.errors import LoginRequiredError, UnknownRecordError
from toolsearch.service.audit import Audit
from toolsearch.service.catalogs.imports.imports import Imports
from toolsearch.service.catalogs.imports.sources import SOURCE, CatalogSource
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.logins.logins import LOGINS, LoginDesk
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with
from toolsearch.service.web.callers import ServiceCaller, Visit
from toolsearch.service.web.parts import ServiceParts, public_url, the_service
from toolsearch.upstreams.logins import CALLBACK_PATH, answer_in
from toolsearch.upstreams.per_user import UserConnection

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Caller = Annotated[Visit, Depends(visit_with("call", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("call", within_reach=True))]
_ENDING_S: Final = 45.0  # for the authorization server to give the tokens once it has let the user in


@dataclass(frozen=True, slots=True)
class ServerLogin:
    """The state of the visitor's login at one server."""

    source: CatalogSource
    is_logged_in: bool


@router.get("/logins")
async def logins(request: Request, service: _Service, visit: _Caller, server: str = "") -> Response:
    sources = await asyncio.to_thread(service[Imports].sources.per_user, visit.caller.tenant)
    found = [await _login(service, visit.caller, each) for each in sources if _may_use(visit.caller, each)]
    return frame.page(request, "logins.html", visit=visit, logins=found, server=server)


@router.post("/logins/{catalog}/{server}/begin")
async def begin(request: Request, service: _Service, sent: _Sent, catalog: str, server: str) -> Response:
    """Show where the browser goes from here: the server has chosen that address, and forms may not lead there."""
    caller, address = sent.visit.caller, public_url(request, "")
    async with _connection(service, caller, catalog, server) as theirs:
        try:
            url = await service[LoginDesk].begin(caller, theirs.login.settings, address, on_success=theirs.wake)
        except LoginRequiredError as error:
            return _told(request, sent.visit, 502, f"You are not logged in to {server}", str(error))
    return frame.page(request, "login.html", visit=sent.visit, server=server, url=url, host=urlsplit(url).netloc)


@router.post("/logins/{catalog}/{server}/end")
async def end(service: _Service, sent: _Sent, catalog: str, server: str) -> Response:
    caller = sent.visit.caller
    async with _connection(service, caller, catalog, server) as theirs:
        await service[Audit].note(caller, "log out", f"{catalog}/{server}")
        await theirs.log_out()
    return see_other(LOGINS)


@router.get(CALLBACK_PATH)
async def answered(request: Request, service: _Service, visit: _Caller) -> Response:
    """Take what the authorization server answers by way of the browser, and wait until the tokens are there."""
    desk, answer = service[LoginDesk], answer_in(request.query_params)
    server = await desk.answered(visit.caller, answer, partial(service[Audit].note, visit.caller, "log in"))
    if server is None:
        return _told(request, visit, 400, "This login is over", "It is not one of yours, or it has ended. Begin again.")
    if not await desk.succeeded(visit.caller, answer.state or "", _ENDING_S):
        return _told(request, visit, 502, f"You are not logged in to {server}", "The login has failed. Begin again.")
    return _told(request, visit, 200, f"You are logged in to {server}", "Close this page, and call the tool again.")


def _told(request: Request, visit: Visit, status: int, title: str, detail: str) -> Response:
    return frame.page(request, "error.html", visit=visit, status=status, title=title, detail=detail)


def _may_use(caller: ServiceCaller, source: CatalogSource) -> bool:
    return source.per_user and caller.principal.reach.allows_server(source.server)


async def _login(service: ServiceParts, caller: ServiceCaller, source: CatalogSource) -> ServerLogin:
    async with _connection(service, caller, source.catalog, source.name) as theirs:
        await theirs.look()
        return ServerLogin(source, theirs.login.is_usable)


@asynccontextmanager
async def _connection(
    service: ServiceParts, caller: ServiceCaller, catalog: str, server: str
) -> AsyncGenerator[UserConnection]:
    """The connection of the caller. Raises UnknownRecordError for a server that the caller may not use, and for one
    at which nobody logs in.
    """
    source = await service[Imports].sources.get(caller.tenant, catalog, server)
    if not _may_use(caller, source):
        raise UnknownRecordError(SOURCE, server)
    async with service[Corpora].using(CorpusRef(caller.tenant, "catalog", catalog)) as corpus:
        found = corpus.gateway.per_user.get(server)
        if found is None:  # another replica has added it a moment ago
            raise UnknownRecordError(SOURCE, server)
        yield found.of(caller)
