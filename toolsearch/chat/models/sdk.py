"""What the models share: a client for each event loop, and an SDK's errors as ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from toolsearch.chat.response_format import ResponseFormat
from toolsearch.errors import BadSettingError, ChatModelError, MissingExtraError
from toolsearch.tools.json_types import Json, JsonObject

_MAX_REASON = 600  # characters of what a provider says; some repeat the request
_KEY_STATUSES = (401, 403)  # what these say may show a part of the key


class _Closeable(Protocol):
    async def close(self) -> None: ...


Client = TypeVar("Client", bound=_Closeable)


class Clients(Generic[Client]):
    """The client that was given, for every loop; or one for each loop, since connections belong to their loop.

    first  one of them, which is as all are
    """

    def __init__(self, given: Client | None, make: Callable[[], Client]) -> None:
        self._given = given
        self._make = make
        self.first = make() if given is None else given  # made at once, so that a missing key is told at once
        self._next = self.first if given is None else None
        self._own: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    def get(self) -> Client:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if loop not in self._own:
            self._own[loop] = self._next or self._make()
            self._next = None
        return self._own[loop]

    async def close(self) -> None:
        """Close this loop's own client; one that was given is its giver's to close."""
        client = self._own.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


def require_sdk(package: str, what: str) -> None:
    """Raise MissingExtraError if *package*, which is named as its extra is, cannot be imported."""
    try:
        __import__(package)
    except ImportError as error:
        raise MissingExtraError(what, package) from error


@contextmanager
def translated(model: str, error_base: type[Exception]) -> Generator[None]:
    """Raise ChatModelError for an SDK's errors, for a broken connection, and for arguments that the SDK refuses."""
    import httpx2  # both SDKs bring it

    try:
        yield
    except ChatModelError:
        raise
    except (error_base, httpx2.HTTPError, httpx2.StreamError, TypeError, ValueError) as error:
        raise ChatModelError(f"{model}: {_reason(error)}") from error
    except (AttributeError, LookupError, RuntimeError) as error:  # SDKs trip over answers that are not of their API
        raise ChatModelError(
            f"{model}: the SDK cannot read the endpoint's answer ({type(error).__name__}: {_reason(error)}); "
            "check the model and the base URL, or ask again"
        ) from error


def _reason(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in _KEY_STATUSES:
        return f"the provider refused the API key or what it may do (HTTP {status}); check the key and its rights"
    said = (_said(getattr(error, "body", None)) or str(error) or type(error).__name__)[:_MAX_REASON]
    return said if status is None else f"HTTP {status}: {said}"


def _said(body: object) -> str | None:
    """The message in an error's body; OpenAI's SDK has taken the body out of its wrapping, Anthropic's has not."""
    if not isinstance(body, Mapping):
        return None
    fields = cast("JsonObject", body)
    message = cast("JsonObject", fields["error"] if isinstance(fields.get("error"), Mapping) else fields).get("message")
    return message if isinstance(message, str) else None


def schema_to_send(model: str, wanted: ResponseFormat[Any] | None, *, is_native: bool) -> JsonObject | None:
    """Return the strict schema of *wanted*. Raises BadSettingError if this model cannot be given it."""
    if wanted is None:
        return None
    if not is_native or wanted.strict_schema is None:
        raise BadSettingError(f"{model} cannot be held to the schema of {wanted.name}; ask it through a ChatClient")
    return wanted.strict_schema


def laid_over(part: JsonObject, extra: JsonObject) -> dict[str, Json]:
    """Return *extra* with *part* of a request in it; an object that both have is merged, and *extra* wins."""
    merged = dict(extra)
    for key, own in part.items():
        given: JsonObject = extra.get(key) or {}
        merged[key] = {**own, **given}
    return merged


def refuse_deferred(model: str, deferred: Sequence[object]) -> None:
    if deferred:
        raise BadSettingError(f"{model} cannot load deferred tools; send them in options.tools instead")
