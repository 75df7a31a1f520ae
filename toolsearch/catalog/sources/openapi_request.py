"""An OpenAPI operation's arguments as an HTTP request, which somebody else sends."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.json_types import Json, JsonObject

Place: TypeAlias = Literal["path", "query", "header", "cookie", "body", "field"]

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Argument:
    """Where one property of the input schema goes.

    property_name  in the input schema; *name* is that on the wire
    place          ``body`` is the whole body, ``field`` a property of it
    explode        arrays and objects in a query or cookie become one pair each item
    as_json        the value is written as JSON, since the document gives a media type for it
    """

    property_name: str
    name: str
    place: Place
    style: str = ""
    explode: bool = True
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """What to send where; *path* has a ``{name}`` for each path argument.

    security  the names of the security schemes that a request needs together, for each way to be let in
    """

    method: str
    base_url: str
    path: str
    arguments: tuple[Argument, ...]
    content_type: str = ""
    security: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to send. Nothing in it is decided by a model beyond the values of the operation's parameters.

    method    upper case
    path      percent-encoded, begins with ``/``
    query     name and value pairs, not yet encoded
    body      the value to encode as *content_type* says, None for no body
    security  as that of `Operation`; nothing of it is in the request
    context   what the application handed to this call: credentials, for example
    """

    method: str
    base_url: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cookies: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Json = None
    content_type: str = ""
    security: tuple[tuple[str, ...], ...] = ()
    context: ToolContext = field(default_factory=ToolContext, repr=False)

    @property
    def url(self) -> str:
        url = f"{self.base_url.rstrip('/')}{self.path}"
        if not self.query:
            return url
        return f"{url}{'&' if '?' in url else '?'}{urlencode(self.query, quote_via=quote)}"


SendRequest: TypeAlias = Callable[[HttpRequest], Awaitable[object]]


class OpenApiCallback:
    """A `ToolCallback` that hands an operation's request to *caller* and returns what that returns."""

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
