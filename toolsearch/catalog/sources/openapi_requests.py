"""An OpenAPI operation's arguments as an HTTP request: with its credentials, its body, and where each argument goes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, quote_plus, urlencode

from toolsearch.documents.json_values import as_object, is_list, is_object
from toolsearch.errors import BadArgumentsError, ToolExecutionError
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.secrets import as_secrets, secrets_of_headers

ArgumentPlace: TypeAlias = Literal["path", "query", "header", "cookie", "body", "field"]
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Argument:
    """The place of one property of the input schema in the request.

    property_name  name in the input schema; *name* is the name in the request
    place          ``body`` is the whole body, ``field`` a property of it
    explode        arrays and objects in a query or cookie become one pair each item
    as_json        the value is written as JSON, because the document gives it a media type
    """

    property_name: str
    name: str
    place: ArgumentPlace
    style: str = ""
    explode: bool = True
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a request, the type of its body, and the credentials that it needs.

    method    upper case
    security  the alternatives, each a set of security schemes that a request needs together
    """

    method: str
    base_url: str
    path: str
    content_type: str = field(default="", kw_only=True)
    security: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Operation(Target):
    """What to send where; *path* has a ``{name}`` for each path argument."""

    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class HttpRequest(Target):
    """A request to send. Nothing in it is decided by a model beyond the values of the operation's parameters.

    path      percent-encoded, begins with ``/``
    query     name and value pairs, not yet encoded
    body      the value to encode by *content_type*, None for no body
    security  as in `Target`; the request holds no credential yet
    context   the application's data for this call, for example credentials
    """

    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cookies: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Json = None
    context: ToolContext = field(default_factory=ToolContext, repr=False)

    @property
    def url(self) -> str:
        url = f"{self.base_url.rstrip('/')}{self.path}"
        if not self.query:
            return url
        return f"{url}{'&' if '?' in url else '?'}{urlencode(self.query, quote_via=quote)}"


SendRequest: TypeAlias = Callable[[HttpRequest], Awaitable[object]]


class OpenApiCallback:
    """A `ToolCallback` that passes an operation's request to *caller* and returns its answer."""

    def __init__(self, operation: Operation, caller: SendRequest) -> None:
        self.operation = operation
        self._caller = caller

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        return await self._caller(build_request(self.operation, arguments, context))


def build_request(operation: Operation, arguments: JsonObject, context: ToolContext) -> HttpRequest:
    """Raises BadArgumentsError for values that would change which operation is called, or forge headers."""
    given = [(each, arguments[each.property_name]) for each in operation.arguments if each.property_name in arguments]
    fields = {each.name: value for each, value in given if each.place == "field"}
    whole = [value for each, value in given if each.place == "body"]
    return HttpRequest(
        method=operation.method,
        base_url=operation.base_url,
        path=_fill(operation.path, {each.name: (each, value) for each, value in given if each.place == "path"}),
        query=tuple(pair for each, value in given if each.place == "query" for pair in _pairs(each, value)),
        headers={each.name: _header(each, value) for each, value in given if each.place == "header"},
        cookies={name: text for each, value in given if each.place == "cookie" for name, text in _pairs(each, value)},
        body=whole[0] if whole else fields or None,
        content_type=operation.content_type if whole or fields else "",
        security=operation.security,
        context=context,
    )


def _fill(path: str, values: Mapping[str, tuple[Argument, Json]]) -> str:
    def segment(placeholder: re.Match[str]) -> str:
        name = placeholder[1]
        if name not in values:
            raise BadArgumentsError(f"{name}: is needed, since it is part of the path")
        argument, value = values[name]
        text = _text(argument, value)
        if text in {"", ".", ".."}:
            raise BadArgumentsError(f"{argument.property_name}: {text!r} would lead to another path")
        return quote(text, safe="")

    return PLACEHOLDER.sub(segment, path)


def _header(argument: Argument, value: Json) -> str:
    text = _text(argument, value)
    if not text.isprintable():
        raise BadArgumentsError(f"{argument.property_name}: a header holds no line breaks or control characters")
    return text


def _pairs(argument: Argument, value: Json) -> list[tuple[str, str]]:
    """Return the pairs that *value* takes in a query: OpenAPI's styles form, deepObject and the delimited ones."""
    if value is None:
        return []
    if is_list(value) and not argument.as_json:
        if argument.explode:
            return [(argument.name, _scalar(item)) for item in value]
        return [(argument.name, _DELIMITERS.get(argument.style, ",").join(map(_scalar, value)))]
    if is_object(value) and not argument.as_json:
        if argument.style == "deepObject":
            return [(f"{argument.name}[{key}]", _scalar(item)) for key, item in value.items()]
        if argument.explode:
            return [(key, _scalar(item)) for key, item in value.items()]
    return [(argument.name, _text(argument, value))]


def _text(argument: Argument, value: Json) -> str:
    """Return *value* as one text: items joined by commas (style simple), an object's keys and values in turn."""
    if argument.as_json:
        return json.dumps(value, separators=(",", ":"))
    if is_list(value):
        return ",".join(map(_scalar, value))
    if is_object(value):
        return ",".join(_scalar(part) for pair in value.items() for part in pair)
    return _scalar(value)


def _scalar(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


_RESERVED_HEADERS: Final = frozenset(  # headers that a model's arguments may never set, whatever the document says
    {"host", "cookie", "connection", "content-length", "proxy-authorization", "te", "transfer-encoding", "upgrade"}
)

_PLACES: Final = ("header", "query", "cookie")
_AUTHORIZATION: Final = "authorization"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials for the API of a document.

    schemes  the document's security schemes, by name
    keys     name of a security scheme -> its key or token; ``user:password`` for HTTP's basic scheme
    headers  sent with every request; one of them may satisfy a security scheme
    """

    schemes: JsonObject
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets that no answer and no error may show, in every form in which they are sent."""
        parts = [part for key in self.keys.values() for part in (key, *key.split(":"))]
        sent = {name: placed[2] for name in self.keys if (placed := self.placed(name))}
        texts = [*secrets_of_headers(self.headers), *secrets_of_headers(sent), *parts]
        return as_secrets(texts, map(quote, texts), map(quote_plus, texts), (quote(text, safe="") for text in texts))

    def has(self, name: str) -> bool:
        """Whether the credential for the security scheme *name* is there, and its place in the request is known."""
        place = _place(self._scheme(name))
        if place is None:
            return False
        return name in self.keys or (place[0] == "header" and place[1] in {each.lower() for each in self.headers})

    def placed(self, name: str) -> tuple[str, str, str] | None:
        """The place, name and value to add for the security scheme *name*; None if a given header already serves it."""
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
    """Add credentials to *request*: those of its first security alternative for which all credentials are there.

    Nothing else of *credentials* but their headers is added. Raises ToolExecutionError, which ends in *hint*, if no
    alternative is complete, and for a body that cannot be written in its content type.
    """
    way = _chosen_security(request, credentials, hint)
    headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _RESERVED_HEADERS}
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


def _chosen_security(request: HttpRequest, credentials: Credentials, hint: str) -> tuple[str, ...]:
    """The security alternative to use. An alternative with schemes is preferred to one that needs none."""
    missing = {way: [name for name in way if not credentials.has(name)] for way in request.security}
    complete = [way for way, names in missing.items() if not names]
    if missing and not complete:
        lacking = ", or ".join(" and ".join(names) for names in missing.values())
        raise ToolExecutionError(f"not sent: there is no credential for the security scheme {lacking}{hint}")
    return next(filter(None, complete), ())


def _place(scheme: JsonObject) -> tuple[str, str] | None:
    """The place of a key of *scheme*: a header (in lower case), the query or a cookie; None if unknown."""
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

    Raises ToolExecutionError for a value that cannot be written in that type: most types only allow a text.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if not kind:
        return None, ""
    if kind == "application/json" or kind.endswith("+json"):
        return json.dumps(body, ensure_ascii=False).encode(), content_type
    if kind == "application/x-www-form-urlencoded" and is_object(body):
        return urlencode({name: _plain_text(value) for name, value in body.items()}).encode(), content_type
    if kind == "multipart/form-data" and is_object(body):
        return _in_parts({name: _plain_text(value) for name, value in body.items()})
    if isinstance(body, str) or kind.startswith("text/"):
        return _plain_text(body).encode(), content_type
    raise ToolExecutionError(f"not sent: only a text can be the body of a request of the type {kind}")


def _in_parts(fields: Mapping[str, str]) -> tuple[bytes, str]:
    """A form in the format of RFC 7578. The boundary depends only on the fields and occurs in none of them."""
    parts = [f'Content-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}' for name, text in fields.items()]
    boundary = hashlib.sha256("\r\n".join(parts).encode()).hexdigest()
    body = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    return body.encode(), f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    """A field's name in the browsers' spelling, so that it ends neither the quotes nor the line."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _plain_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
