"""Parameters without annotation that take bytes: which ones do, and what a model sends for them.

A model sends a text, which becomes UTF-8, or ``{"base64": "..."}`` for any other bytes.
"""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolsearch.tools.json_types import Json
from toolsearch.tools.results import BASE64

BYTES_NOTE = f'Text (as UTF-8), or {{"{BASE64}": "..."}} for other bytes.'
_FORMS: list[Json] = [
    {"type": "string"},
    {
        "type": "object",
        "properties": {BASE64: {"type": "string"}},
        "required": [BASE64],
        "additionalProperties": False,
    },
]


def _read(value: Json) -> bytes:
    match value:
        case str():
            return value.encode()
        case {"base64": str(encoded), **others} if not others:
            try:
                return base64.b64decode(encoded, validate=True)
            except ValueError:
                raise PydanticCustomError("bytes", "the base64 is not valid") from None
        case _:
            raise PydanticCustomError("bytes", 'must be a text, or {"base64": "..."}')


Bytes = Annotated[Any, PlainValidator(_read), WithJsonSchema({"anyOf": _FORMS})]

ARTICLES = r"(?:(?:an?|the|this|new|open|readable|writable|binary|temporary) )*"
_KINDS = r"(?:bytes-like objects?|bytes or buffer|bytes or bytearray|buffer object|byte ?strings?|binary data)\b"
_FIRST_OBJECT = re.compile(rf"(?:en|de)code {ARTICLES}{_KINDS}", re.IGNORECASE)  # "Encode the bytes-like objects using"
_NO_NAMES = frozenset({"as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"})  # what follows a kind
_BUFFERS = frozenset({"buffer", "bytes", "data", "password", "salt"})  # names of buffers in functions written in C
_TEXT_TOO = re.compile(
    r"[^.\n]{0,60}?\b(?:str|text|strings?|paths?|filename|name|numbers?|lists?|sequence)\b", re.IGNORECASE
)


def takes_bytes(parameter: Parameter, function: Callable[..., Any], *, is_first: bool) -> bool:
    """Whether *parameter*, which has no annotation, takes bytes and no text: by its default, or by the documentation.

    What is to be encoded or decoded is the first parameter. Functions written in C often say nothing, but
    have names for buffers.
    """
    if isinstance(parameter.default, bytes):
        return True
    if parameter.name in _BUFFERS and inspect.isbuiltin(function):
        return True
    doc = inspect.getdoc(function) or ""
    opening = _FIRST_OBJECT.match(doc) if is_first else None
    is_object = opening is not None and not _TEXT_TOO.match(doc, opening.end())
    return is_object or is_documented_as(_KINDS, parameter.name, doc)


def is_documented_as(kinds: str, name: str, doc: str) -> bool:
    """Whether *doc* says that the parameter *name* is one of *kinds*, a pattern, and says of no text beside it."""
    if name in _NO_NAMES:
        return False
    told = rf"[*`']*{re.escape(name)}[*`']*"
    verb = r"(?: and [*`']*\w+[*`']*)?(?:[ \t]*(?::|--?)[ \t]*|\s+(?:must be |is |are |should be )?)"
    behind_kind, before_kind = (
        rf"{kinds} {told}(?!\w)",
        rf"(?:^[ \t]*|\bargument |\boptional |[.;] ){told}{verb}{ARTICLES}{kinds}",
    )
    places = re.finditer(f"{behind_kind}|{before_kind}", doc, re.IGNORECASE | re.MULTILINE)
    return any(not _TEXT_TOO.match(doc, place.end()) for place in places)
