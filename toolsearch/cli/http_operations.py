"""Sends one operation of an OpenAPI document for ``toolsearch call``, with credentials out of the environment."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadSettingError, SourceError, ToolExecutionError
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json
from toolsearch.upstreams.secrets import redacted

if TYPE_CHECKING:
    from toolsearch.catalog.sources.openapi_request import HttpRequest
    from toolsearch.catalog.sources.openapi_sending import Credentials, SentRequest

TIMEOUT_S: Final = 60.0
_MOST_BYTES: Final = 20_000_000
_MOST_SHOWN: Final = 2_000  # characters of an answer that is an error
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REDIRECTS: Final = range(300, 400)
_CUT_OFF: Final = "the API's answer broke off; the call may have had its effect"


@dataclass(frozen=True, slots=True)
class HttpCalls:
    """Where the operations are sent, and with what.

    base_url  "": where the document says
    headers   of every request
    keys      credentials, by the name of the document's security scheme
    """

    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def is_given(self) -> bool:
        return bool(self.base_url or self.headers or self.keys)


def from_environment(given: Sequence[str], option: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Read each ``NAME=VARIABLE``. Raises BadSettingError, which shows no value: it might be the secret itself."""
    read: dict[str, str] = {}
    for each in given:
        name, _, variable = each.partition("=")
        if not name or not _VARIABLE.fullmatch(variable):
            raise BadSettingError(
                f"{option} wants NAME=VARIABLE, the name of a variable of the environment that holds the value: other "
                "users of this machine can read what is on a command line"
            )
        if variable not in environment:
            raise BadSettingError(f"{option}: the environment has no variable {variable}")
        if not environment[variable].isprintable():  # http.client would show the value in its error
            raise BadSettingError(f"{option}: the value of {variable} has a line break or a control character")
        read[name] = environment[variable]
    return read


def http_tool(tool: Tool, calls: HttpCalls) -> Tool:
    """*tool* with a callback that sends it, if it is an operation of a document.

    Raises SourceError if the document cannot be read any more, or is none; BadSettingError if no address is known.
    """
    from toolsearch.catalog.loading import is_openapi
    from toolsearch.catalog.sources.openapi import OpenApiSource
    from toolsearch.catalog.sources.openapi_sending import Credentials
    from toolsearch.documents.files import read_document

    place = tool.source.rpartition("#")[0]
    document = read_document(Path(place)) if Path(place).suffix else None
    if not is_openapi(document):
        raise BadSettingError(
            f"--base-url, --header and --key are for operations of OpenAPI documents, not {tool.name}"
        )
    fields = as_object(document) or {}
    schemes = as_object((as_object(fields.get("components")) or {}).get("securitySchemes")) or {}
    if unknown := sorted(set(calls.keys) - set(schemes)):
        known = ", ".join(schemes) or "none"
        raise BadSettingError(f"--key: {place} has no security scheme {', '.join(unknown)}; it has: {known}")

    credentials = Credentials(schemes, calls.keys, calls.headers)

    async def send(request: HttpRequest) -> object:
        return await asyncio.to_thread(_send, _sent(request, credentials, calls.base_url), credentials.secrets)

    source = OpenApiSource(fields, server=tool.definition.server, caller=send, description=place)
    for each in source.load().tools:
        if each.name == tool.name:
            return each
    raise SourceError(f"{place} has no operation {tool.name!r} any more; index it again")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could take the credentials elsewhere."""

    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


def _send(request: SentRequest, hidden: Collection[str]) -> Json:
    made = urllib.request.Request(  # noqa: S310  http or https, as checked
        request.url, request.content, dict(request.headers), method=request.method
    )
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(made, timeout=TIMEOUT_S) as answer:
            content = answer.read(_MOST_BYTES + 1)
            if answer.length and len(content) <= _MOST_BYTES:  # bytes that were promised and never came
                raise ToolExecutionError(_CUT_OFF)
            return _read(content, answer.headers.get_content_type())
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(_MOST_BYTES).decode("utf-8", "replace")
            if error.code in _REDIRECTS:
                raise ToolExecutionError(f"the API answers {error.code}, a redirect, which is not followed") from None
            said = redacted(f"{error.reason}: {text}", hidden)
            raise ToolExecutionError(f"the API answers {error.code} {said[:_MOST_SHOWN]}") from None
    except TimeoutError:
        raise ToolExecutionError(
            f"the API did not answer within {TIMEOUT_S:g} s; the call may have had its effect"
        ) from None
    except urllib.error.URLError as error:
        raise ToolExecutionError(f"the API cannot be reached: {error.reason}") from None
    except (OSError, http.client.HTTPException):
        raise ToolExecutionError(_CUT_OFF) from None


def _sent(request: HttpRequest, credentials: Credentials, base_url: str) -> SentRequest:
    from toolsearch.catalog.sources.openapi_sending import sent_request

    there = replace(request, base_url=base_url or request.base_url)
    parts = urlsplit(there.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolExecutionError(
            f"the document says no address to send this to ({there.base_url!r}); give one by --base-url"
        )
    return sent_request(there, credentials, hint="; give it by --key")


def _read(content: bytes, media_type: str) -> Json:
    if len(content) > _MOST_BYTES:
        raise ToolExecutionError(f"the API's answer has more than {_MOST_BYTES:,} bytes; ask for less")
    text = content.decode("utf-8", "replace")
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
