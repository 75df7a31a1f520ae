"""Model APIs for a tenant's callers: their requests go to the tenant's provider, with the provider's key, through the
compatible proxy. So a program that only lets its user set an address and a key gets tool search.

The operator's tools are those of a catalog or toolset. Their calls go the way of all calls of the service.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

import httpx2
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolsearch.access.reach import Reach
from toolsearch.api.providers import ModelApi
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import (
    NotAuthenticatedError,
    ToolExecutionError,
    ToolSearchError,
    UnknownRecordError,
    text_for_model,
)
from toolsearch.proxy.app import ProxiedRequest, ProxyApp
from toolsearch.proxy.known_replies import CallersReplies, KnownReplies
from toolsearch.proxy.upstream import Upstream
from toolsearch.service.activity.activity import Who
from toolsearch.service.calls.calls import Calls, HandedBack
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.providers import Provider, Providers
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.paths import MODELS, is_under, model_api
from toolsearch.service.web.problems import no_provider
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.results import ToolOutput

_TOOLSET: Final = "x-toolsearch-toolset"  # names the toolset whose tools the model is given
_DEFAULT: Final = "default"  # the catalog of requests that name no toolset
_NOT_SENT_ON: Final = frozenset({b"authorization", b"x-api-key", b"cookie", _TOOLSET.encode()})
_MOST_BYTES: Final = 512 * 2**20  # of the lists of all applications that are kept; the newest is kept in any case
_MOST_APPS: Final = 256
_caller: ContextVar[ServiceCaller] = ContextVar("the caller of the proxied request")


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A `ToolCallback` that runs a tool of a corpus for the caller of the request."""

    calls: Calls
    ref: CorpusRef
    name: str

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        """Raises ToolExecutionError with what the model is to read."""
        try:
            result = await self.calls.call(_caller.get(), self.ref, self.name, arguments)
        except ToolSearchError as error:
            raise ToolExecutionError(text_for_model(error)) from error
        if isinstance(result, HandedBack):
            raise ToolExecutionError("this tool does not run in the service; go on without it")
        return ToolOutput(result.content, result.structured, is_error=result.is_error)


class _Place(NamedTuple):
    """What the application that answers a request is for; *ref* is None if there are no tools of the operator."""

    tenant: str
    base_url: str
    ref: CorpusRef | None
    reach: Reach


class _Kept(NamedTuple):
    """An application, with the engine that its tools are of and the version of its catalog. The engine may leave
    memory, and then the application does as well, since it has the engine's index.
    """

    app: ProxyApp
    engine: ReferenceType[ToolSearch] | None
    version: int

    @property
    def is_usable(self) -> bool:
        return self.engine is None or self.engine() is not None

    def is_of(self, engine: ToolSearch | None, version: int) -> bool:
        return (self.engine and self.engine()) is engine and self.version == version


class ProxyFace:
    """An ASGI application for the paths of model APIs. All requests share the connections of *transport*."""

    def __init__(
        self,
        providers: Providers,
        corpora: Corpora,
        calls: Calls,
        settings: ServiceSettings,
        transport: httpx2.AsyncBaseTransport,
        note: Callable[[Who, ProxiedRequest], None],
    ) -> None:
        """*note* is told of each request that was answered."""
        self._providers = providers
        self._corpora = corpora
        self._calls = calls
        self._settings = settings
        self._transport = transport
        self._note = note
        self._kept: OrderedDict[_Place, _Kept] = OrderedDict()  # least recently used first
        self._known = KnownReplies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises NotAuthenticatedError, NotPermittedError, UnknownRecordError, and HttpRefusal without a provider."""
        caller: ServiceCaller | None = scope["state"].get("caller")
        api = model_api(scope)
        if caller is None or api is None:
            raise NotAuthenticatedError
        caller.admit(("search", "call"), within_reach=True)
        provider = await self._provider(caller, api)
        toolset = None if is_under(MODELS, scope["path"]) else Headers(scope=scope).get(_TOOLSET, "")
        app = await self._app(provider, caller, toolset)
        token = _caller.set(caller)
        try:
            await app({**scope, "headers": _headers(scope, provider)}, receive, send)
        finally:
            _caller.reset(token)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _provider(self, caller: ServiceCaller, api: ModelApi) -> Provider:
        try:
            return await self._providers.get(caller.tenant, api)
        except UnknownRecordError:
            raise no_provider(api) from None

    async def _app(self, provider: Provider, caller: ServiceCaller, toolset: str | None) -> ProxyApp:
        """The application for the tools of *toolset* that *caller* reaches; "" names the default catalog, and None no
        tools.
        """
        place = _Place(caller.tenant, provider.base_url, None, caller.principal.reach)
        if toolset is not None:
            over = CorpusRef(caller.tenant, "toolset" if toolset else "catalog", toolset or _DEFAULT)
            try:
                async with self._corpora.using(over) as corpus:
                    place = place._replace(ref=over, reach=corpus.seen_by(caller).reach)
                    return await self._app_with(corpus.engine, place)
            except UnknownRecordError:
                if toolset:
                    raise
        return await self._app_with(None, place)

    async def _app_with(self, engine: ToolSearch | None, place: _Place) -> ProxyApp:
        version = 0 if engine is None else engine.catalog.snapshot().version
        kept = self._kept.get(place)
        if kept is None or not kept.is_of(engine, version):
            tools = None
            if engine is not None and place.ref is not None:
                tools = await search_threads.run(self._tools, engine.view(place.reach), place.ref)
            upstream = Upstream(place.base_url, transport=self._transport)
            index = None if engine is None else engine.index
            replies = partial(self._replies, place.base_url)
            app = ProxyApp(upstream, self._settings, tools, index=index, note=self._answered, replies=replies)
            kept = self._kept[place] = _Kept(app, None if engine is None else ref(engine), version)
        self._kept.move_to_end(place)
        self._make_room()
        return kept.app

    def _answered(self, done: ProxiedRequest) -> None:
        caller = _caller.get()
        self._note(Who(caller.tenant, caller.key_id, f"proxy:{done.api}", caller.request_id), done)

    def _replies(self, base_url: str) -> CallersReplies:
        """Those that the caller has got from the API at *base_url*, whatever application has answered."""
        caller = _caller.get()
        return self._known.of(caller.tenant, caller.account, base_url)

    def _make_room(self) -> None:
        for place in [place for place, kept in self._kept.items() if not kept.is_usable]:
            del self._kept[place]
        held = sum(kept.app.lists.bytes for kept in self._kept.values())
        while len(self._kept) > 1 and (held > _MOST_BYTES or len(self._kept) > _MOST_APPS):
            _, gone = self._kept.popitem(last=False)
            held -= gone.app.lists.bytes

    def _tools(self, view: View, ref: CorpusRef) -> Catalog | None:
        """The tools in *view* that run here; None if there are none."""
        found = (tool for name in view.names if (tool := view.find(name)) is not None and tool.is_callable)
        return Catalog([Tool(tool.definition, OwnTool(self._calls, ref, tool.name)) for tool in found]) or None


def _headers(scope: Scope, provider: Provider) -> list[tuple[bytes, bytes]]:
    """The headers of the request, with the provider's key in place of the caller's."""
    key = provider.key.encode()
    credential = (b"x-api-key", key) if provider.api == "anthropic" else (b"authorization", b"Bearer " + key)
    return [*(each for each in scope["headers"] if each[0] not in _NOT_SENT_ON), credential]
