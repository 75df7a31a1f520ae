"""Shared parts of the models: clients for each event loop, translated errors of SDKs, tool choices, betas, clouds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from toolsearch.chat.model import Prompt, ResponseFormat
from toolsearch.errors import BadSettingError, ChatModelError, MissingExtraError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.capabilities import Capabilities, Cloud
from toolsearch.wire.messages import Message, ToolChangeMessage

_MAX_REASON = 600  # characters of a provider's message; some messages repeat the request
_KEY_STATUSES = (401, 403)  # messages with these statuses may contain a part of the key


class _Closeable(Protocol):
    async def close(self) -> None: ...


Client = TypeVar("Client", bound=_Closeable)


class Clients(Generic[Client]):
    """The client that was given, for every loop; or one for each loop, since connections belong to their loop.

    first  one of the clients, which are all alike
    """

    def __init__(self, given: Client | None, make: Callable[[], Client]) -> None:
        self._given = given
        self._make = make
        self.first = make() if given is None else given  # made at once, so that a missing key is reported at once
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
    """Raise MissingExtraError if *package* cannot be imported. Its extra has the same name."""
    try:
        __import__(package)
    except ImportError as error:
        raise MissingExtraError(what, package) from error


@contextmanager
def translated(model: str, error_base: type[Exception]) -> Generator[None]:
    """Raise ChatModelError for an SDK's errors, for a broken connection, and for arguments that the SDK refuses."""
    import httpx2  # both SDKs depend on it

    try:
        yield
    except ChatModelError:
        raise
    except (error_base, httpx2.HTTPError, httpx2.StreamError, TypeError, ValueError) as error:
        raise ChatModelError(f"{model}: {_reason(error)}") from error
    # The SDKs raise these for answers that are not of their API.
    except (AttributeError, LookupError, RuntimeError) as error:
        raise ChatModelError(
            f"{model}: the SDK cannot read the endpoint's answer ({type(error).__name__}: {_reason(error)}); "
            "check the model and the base URL, or ask again"
        ) from error


def _reason(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in _KEY_STATUSES:
        return f"the provider refused the API key or its rights (HTTP {status}); check the key and its rights"
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


# Names of the SDKs' classes, since some can only be imported with a cloud's own libraries. Claude Platform on AWS
# (AsyncAnthropicAWS) is Anthropic's own API, whatever its address.
_CLIENTS: dict[str, Cloud] = {
    "AsyncAnthropicAWS": "",
    "AsyncAnthropicBedrock": "bedrock",
    "AsyncAnthropicBedrockMantle": "bedrock",
    "AsyncAnthropicFoundry": "azure",
    "AsyncAnthropicGoogleCloud": "vertex",
    "AsyncAnthropicVertex": "vertex",
    "AsyncAzureOpenAI": "azure",
    "AsyncBedrockOpenAI": "bedrock",
}


def cloud_of(client: object, own_host: str) -> Cloud:
    """The cloud of *client*; "other" if it sends requests neither to the provider's *own_host* nor to a subdomain, such
    as a region's.
    """
    for kind in type(client).__mro__:
        if kind.__name__ in _CLIENTS:
            return _CLIENTS[kind.__name__]
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    return "" if host == own_host or host.endswith(f".{own_host}") else "other"


logger = logging.getLogger(__name__)
_FREE = (None, "auto", "none")
_ANY = "required"


def with_possible_choice(prompt: Prompt, known: Capabilities, model: str) -> tuple[Prompt, Mapping[str, str]]:
    """Return *prompt*, with the tool choice "auto" if *model* does not accept its own, and the note for the answer's
    metadata. The change is logged as well.

    Some models do not accept a choice that forces a call, or a choice of a tool that only a message has added. If
    thoughts are bound to the list, a tool outside of it was described in a message, too.
    """
    options = prompt.options
    choice = options.tool_choice
    if not options.tools or choice in _FREE or _is_taken(prompt, known):
        return prompt, {}
    logger.warning("%s does not take the tool choice %r: 'auto' was sent", model, choice)
    return replace(prompt, options=replace(options, tool_choice="auto")), {"choice_sent": "auto"}


def _is_taken(prompt: Prompt, known: Capabilities) -> bool:
    name = prompt.options.tool_choice
    if not known.forced_choice or name == _ANY or any(tool.name == name for tool in prompt.options.tools):
        return known.forced_choice
    return known.choice_of_added if _is_added(name, prompt.messages) else not known.binds_thinking


def _is_added(name: str | None, messages: Sequence[Message]) -> bool:
    changes = (message for message in messages if isinstance(message, ToolChangeMessage))
    return any(definition.name == name for change in changes for definition in change.added)


BETA = "anthropic-beta"


def betas_in(headers: Mapping[str, object]) -> list[str]:
    """The betas that *headers* name, whatever the case of the header's own name."""
    values = [value for name, value in headers.items() if name.lower() == BETA and isinstance(value, str)]
    return [beta.strip() for value in values for beta in value.split(",") if beta.strip()]


def with_betas(headers: Mapping[str, str], betas: Iterable[str]) -> dict[str, str]:
    """Return *headers* with their own betas and *betas*, each once; without the header if there are no betas."""
    others = {name: value for name, value in headers.items() if name.lower() != BETA}
    named = dict.fromkeys([*betas_in(headers), *betas])
    return others | ({BETA: ",".join(named)} if named else {})
