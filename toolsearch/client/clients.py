"""The clients: each operation as a method, typed for the plain client and the async one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from toolsearch.client import operations
from toolsearch.client.exchange import AsyncTransport, ClientRequest, EventStream, PagedList, SyncTransport

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Described:
    """Shows the signature and the text of the function that it is made from."""

    def __init__(self, build: Callable[..., object]) -> None:
        self.__doc__ = build.__doc__
        self.__wrapped__ = build


class ClientMethod(_Described, Generic[_P, _T]):
    """A method that sends the request that *build* makes, and returns the answer."""

    def __init__(self, build: Callable[_P, ClientRequest[_T]]) -> None:
        super().__init__(build)
        self._build = build

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncTransport, owner: type) -> Callable[_P, _T]: ...
    @overload
    def __get__(self, client: AsyncTransport, owner: type) -> Callable[_P, Coroutine[Any, Any, _T]]: ...
    def __get__(self, client: SyncTransport | AsyncTransport | None, owner: type) -> Any:
        return self if client is None else partial(_through, client.send, self._build)


class Iteration(_Described, Generic[_P, _T]):
    """A method that iterates over a list, however many pages it has."""

    def __init__(self, build: Callable[_P, PagedList[_T]]) -> None:
        super().__init__(build)
        self._build = build

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncTransport, owner: type) -> Callable[_P, Generator[_T]]: ...
    @overload
    def __get__(self, client: AsyncTransport, owner: type) -> Callable[_P, AsyncGenerator[_T]]: ...
    def __get__(self, client: SyncTransport | AsyncTransport | None, owner: type) -> Any:
        return self if client is None else partial(_through, client.pages, self._build)


class ClientStream(_Described, Generic[_P, _T]):
    """A method that iterates over events as they come."""

    def __init__(self, build: Callable[_P, EventStream[_T]]) -> None:
        super().__init__(build)
        self._build = build

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncTransport, owner: type) -> Callable[_P, Generator[_T]]: ...
    @overload
    def __get__(self, client: AsyncTransport, owner: type) -> Callable[_P, AsyncGenerator[_T]]: ...
    def __get__(self, client: SyncTransport | AsyncTransport | None, owner: type) -> Any:
        return self if client is None else partial(_through, client.events, self._build)


def _through(perform: Callable[[Any], object], build: Callable[..., object], /, *args: Any, **kwargs: Any) -> object:
    return perform(build(*args, **kwargs))


class _Operations:
    """All operations; `toolsearch.client.operations` describes their arguments and results."""

    me = ClientMethod(operations.me)

    create_catalog = ClientMethod(operations.create_catalog)
    catalogs = Iteration(operations.catalogs)
    catalog = ClientMethod(operations.catalog)
    describe_catalog = ClientMethod(operations.describe_catalog)
    delete_catalog = ClientMethod(operations.delete_catalog)
    write_tools = ClientMethod(operations.write_tools)
    tools = Iteration(operations.tools)
    tool = ClientMethod(operations.tool)
    delete_tools = ClientMethod(operations.delete_tools)
    refused_tools = Iteration(operations.refused_tools)

    add_source = ClientMethod(operations.add_source)
    sources = Iteration(operations.sources)
    source = ClientMethod(operations.source)
    refresh_source = ClientMethod(operations.refresh_source)
    delete_source = ClientMethod(operations.delete_source)
    jobs = Iteration(operations.jobs)
    job = ClientMethod(operations.job)
    cancel_job = ClientMethod(operations.cancel_job)
    job_events = ClientStream(operations.job_events)

    search = ClientMethod(operations.search)

    open_session = ClientMethod(operations.open_session)
    sessions = Iteration(operations.sessions)
    session = ClientMethod(operations.session)
    delete_session = ClientMethod(operations.delete_session)
    session_tools = ClientMethod(operations.session_tools)
    session_search = ClientMethod(operations.session_search)
    expand = ClientMethod(operations.expand)
    pin = ClientMethod(operations.pin)
    unpin = ClientMethod(operations.unpin)
    evict = ClientMethod(operations.evict)
    begin_turn = ClientMethod(operations.begin_turn)
    end_turn = ClientMethod(operations.end_turn)
    active_tools = Iteration(operations.active_tools)
    deferred_tools = Iteration(operations.deferred_tools)

    call = ClientMethod(operations.call)
    call_in_session = ClientMethod(operations.call_in_session)
    execute = ClientMethod(operations.execute)
    report_call = ClientMethod(operations.report_call)
    savings = ClientMethod(operations.savings)
    usage = ClientMethod(operations.usage)
    misses = Iteration(operations.misses)
    receipts = Iteration(operations.receipts)

    create_key = ClientMethod(operations.create_key)
    keys = Iteration(operations.keys)
    rotate_key = ClientMethod(operations.rotate_key)
    revoke_key = ClientMethod(operations.revoke_key)
    create_tenant = ClientMethod(operations.create_tenant)
    tenants = Iteration(operations.tenants)
    audit = Iteration(operations.audit)


class ToolSearchClient(_Operations, SyncTransport):
    """A client of the service at *url*, for *key*. Lists are iterators, which ask for pages as they are needed.

        with ToolSearchClient("http://127.0.0.1:8080", key) as client:
            session = client.open_session(catalog="default")

    Each method raises `ServiceError`, with the service's stable code. A request that the service postpones (429 and 503
    with Retry-After) is repeated, for at most *max_wait_s* seconds. After a broken connection a request is repeated if
    that cannot have its effect twice. Safe to share between threads.
    """


class AsyncToolSearchClient(_Operations, AsyncTransport):
    """`ToolSearchClient` to be awaited; lists are asynchronous iterators.

    async with AsyncToolSearchClient("http://127.0.0.1:8080", key) as client:
        session = await client.open_session(catalog="default")
    """
