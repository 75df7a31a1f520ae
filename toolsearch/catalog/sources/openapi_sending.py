"""An operation's request as it is sent: with the credentials that it needs, where its document says, and its body."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, quote_plus, urlencode

from toolsearch.catalog.sources.openapi_request import HttpRequest
from toolsearch.documents.json_values import as_object, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.secrets import as_secrets, secrets_of_headers

_OURS: Final = frozenset(  # headers that no argument of a model may set, whatever the document says
    {"host", "cookie", "connection", "content-length", "proxy-authorization", "te", "transfer-encoding", "upgrade"}
)
_PLACES: Final = ("header", "query", "cookie")
_AUTHORIZATION: Final = "authorization"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What there is to be let in with by the API of a document.

    schemes  the document's security schemes, by name
    keys     by the name of a security scheme: a key or token; ``user:password`` for HTTP's basic scheme
    headers  sent with every request; one of them may be what a security scheme asks for
    """

    schemes: JsonObject
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def secrets(self) -> frozenset[str]:
        """What no answer and no error may show, in every form in which it is sent."""
        parts = [part for key in self.keys.values() for part in (key, *key.split(":"))]
        sent = {name: placed[2] for name in self.keys if (placed := self.placed(name))}
        texts = [*secrets_of_headers(self.headers), *secrets_of_headers(sent), *parts]
        return as_secrets(texts, map(quote, texts), map(quote_plus, texts), (quote(text, safe="") for text in texts))

    def has(self, name: str) -> bool:
        """Whether there is what the security scheme *name* asks for, and it is known where to put it."""
        place = _place(self._scheme(name))
        if place is None:
            return False
        return name in self.keys or (place[0] == "header" and place[1] in {each.lower() for each in self.headers})

    def placed(self, name: str) -> tuple[str, str, str] | None:
        """The place, name and value to add for the security scheme *name*; None where a header is there for it."""
        scheme = self._scheme(name)
        place, key = _place(scheme), self.keys.get(name)
        return None if place is None or key is None else (*place, _value(scheme, key))

    def _scheme(self, name: str) -> JsonObject:
        return as_object(self.schemes.get(name)) or {}


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that is complete. The names of *headers* are in lower case."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)


def sent_request(request: HttpRequest, credentials: Credentials, *, hint: str = "") -> SentRequest:
    """Add to *request* what lets it in: all that the first of its ways in needs for which everything is there.

    Nothing else of *credentials* but their headers is added. Raises ToolExecutionError, which ends in *hint*, if no way
    in is complete, and for a body that cannot be written in its content type.
    """
    way = _way_in(request, credentials, hint)
    headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _OURS}
    cookies = {name: quote(value, safe="") for name, value in request.cookies.items()}
    query = list(request.query)
    content, content_type = encoded(request.body, request.content_type)
    if content_type:
        headers["content-type"] = content_type
    headers |= {name.lower(): value for name, value in credentials.headers.items()}
    for place, name, value in filter(None, map(credentials.placed, way)):
        match place:
            case "query":
                query.append((name, value))
            case "cookie":
                cookies[name] = value
            case _:
                headers[name] = value
    if cookies:
        given = [headers["cookie"]] if "cookie" in headers else []
        headers["cookie"] = "; ".join([*given, *(f"{name}={value}" for name, value in cookies.items())])
    return SentRequest(request.method, replace(request, query=tuple(query)).url, headers, content)


def _way_in(request: HttpRequest, credentials: Credentials, hint: str) -> tuple[str, ...]:
    """The security schemes to be let in by; one way with any is better than one that asks for nothing."""
    missing = {way: [name for name in way if not credentials.has(name)] for way in request.security}
    complete = [way for way, names in missing.items() if not names]
    if missing and not complete:
        lacking = ", or ".join(" and ".join(names) for names in missing.values())
        raise ToolExecutionError(f"not sent: there is no credential for the security scheme {lacking}{hint}")
    return next(filter(None, complete), ())


def _place(scheme: JsonObject) -> tuple[str, str] | None:
    """Where a key of *scheme* goes: to a header, in lower case, the query or a cookie; None if that is not known."""
    match scheme.get("type"):
        case "apiKey":
            place, name = scheme.get("in"), scheme.get("name")
            if place not in _PLACES or not isinstance(name, str) or not name:
                return None
            return str(place), name.lower() if place == "header" else name
        case "http" | "oauth2" | "openIdConnect":
            return "header", _AUTHORIZATION
        case _:
            return None


def _value(scheme: JsonObject, key: str) -> str:
    if scheme.get("type") == "apiKey":
        return key
    if scheme.get("type") == "http" and str(scheme.get("scheme", "")).lower() == "basic":
        return f"Basic {_base64(key)}"
    return f"Bearer {key}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def encoded(body: Json, content_type: str) -> tuple[bytes | None, str]:
    """The bytes of *body*, and the content type to send with them; None for no content type.

    Raises ToolExecutionError for a value that cannot be written in that type: for most, only a text can.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if not kind:
        return None, ""
    if kind == "application/json" or kind.endswith("+json"):
        return json.dumps(body, ensure_ascii=False).encode(), content_type
    if kind == "application/x-www-form-urlencoded" and is_object(body):
        return urlencode({name: _text(value) for name, value in body.items()}).encode(), content_type
    if kind == "multipart/form-data" and is_object(body):
        return _in_parts({name: _text(value) for name, value in body.items()})
    if isinstance(body, str) or kind.startswith("text/"):
        return _text(body).encode(), content_type
    raise ToolExecutionError(f"not sent: only a text can be the body of a request of the type {kind}")


def _in_parts(fields: Mapping[str, str]) -> tuple[bytes, str]:
    """A form as RFC 7578 has it. What parts the fields depends on them alone, and is in none of them."""
    parts = [f'Content-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}' for name, text in fields.items()]
    boundary = hashlib.sha256("\r\n".join(parts).encode()).hexdigest()
    body = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    return body.encode(), f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    """A field's name as browsers write it, so that it ends neither the quotes nor the line."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
