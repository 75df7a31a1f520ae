"""Operations as methods of both clients: each is described once, and typed for the client that it is used with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from toolsearch.client.exchange import EventStream, Listing, Request
from toolsearch.client.transports import AsyncTransport, SyncTransport

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Described:
    """Shows the signature and the text of the function that it is made from."""

    def __init__(self, build: Callable[..., object]) -> None:
        self.__doc__ = build.__doc__
        self.__wrapped__ = build


class Operation(_Described, Generic[_P, _T]):
    """A method that sends the request that *build* makes, and returns the answer."""

    def __init__(self, build: Callable[_P, Request[_T]]) -> None:
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

    def __init__(self, build: Callable[_P, Listing[_T]]) -> None:
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


class Subscription(_Described, Generic[_P, _T]):
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
