"""Functions that take or return what JSON cannot carry, as far as their annotations or their documentation say so.

For sources that take whatever functions there are. Old functions have no annotations, and builtins cannot have any.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from toolsearch.tools.json_forms import has_json_form
from toolsearch.tools.signature import type_hints, underlying

_NAMES = frozenset(  # what old functions call the parameters that only live Python objects fit
    {
        "buffer", "callable", "callback", "cls", "code", "coro", "fileobj", "fn", "fp", "frame", "fsrc", "func",
        "function", "generator", "key_func", "klass", "loop", "module", "predicate", "readline", "sock", "stream", "tb",
        "traceback",
    }
)  # fmt: skip

_ARTICLES = r"(?:(?:an?|the|this|new|open|readable|writable|binary|temporary) )*"
_LIVE = (
    r"(?:(?:bytes|file)-like objects?|bytes or buffer|bytes or bytearray|buffer object|byte ?strings?|binary data"
    r"|(?:file|code|frame|socket|module|class|type|generator|callable|coroutine|function|stream) objects?"
    r"|(?:generator|callable|coroutine|decorator|context manager)s?)\b"
)
_TEXT_TOO = re.compile(
    r"[^.\n]{0,60}?\b(?:str|text|strings?|paths?|filename|name|numbers?|lists?|sequence)\b", re.IGNORECASE
)
_RETURNED = re.compile(
    rf"\breturn(?:s|ing)? (?:it as )?{_ARTICLES}(?P<kind>iterator|generator|context manager|decorator|temporary file"
    r"|(?:[\w-]+ ){0,2}(?:hash|hashing|digest|iterator|generator|file|socket|thread|process|lock|semaphore|event"
    r"|condition|queue|barrier|connection|compressor|decompressor|code|frame|module|polling|pool|shared) object)\b"
    rf"|\bcreate (?:and return )?{_ARTICLES}(?P<made>hashing object|temporary file|lock object)\b",
    re.IGNORECASE,
)
_DECORATOR = re.compile(r"(?:an? )?decorator (?:factory|for|that|to|used)\b|[^.]* decorator\.?\Z", re.IGNORECASE)
_CLASS = re.compile(r"\b[Rr]eturn(?:s|ing)? (?:(?:an?|the|new|current|main) )*(?P<name>[A-Z]\w+) (?:object|instance)\b")


def reason_against(function: Callable[..., Any]) -> str | None:
    """Why no model can call *function*, or read what it returns; None where nothing says so.

    Parameters that need not be given do not count, and neither do those with annotations, which `read_signature` reads.
    """
    doc = inspect.getdoc(underlying(function)) or ""
    for parameter in inspect.signature(function).parameters.values():
        if _is_needed(parameter) and (parameter.name in _NAMES or _is_live(parameter.name, doc)):
            return f"its parameter {parameter.name!r} takes a Python object, not JSON"
    hints = type_hints(function)
    if "return" in hints:
        returned = _annotated(hints["return"])
    else:
        returned = _documented(" ".join(doc.partition("\n\n")[0].split()), underlying(function))
    return f"it returns a Python object ({returned}), which has no JSON form" if returned else None


def _is_needed(parameter: Parameter) -> bool:
    is_left_out = parameter.default is not Parameter.empty or parameter.kind is Parameter.VAR_KEYWORD
    return not is_left_out and parameter.annotation is Parameter.empty


def _is_live(name: str, doc: str) -> bool:
    """Whether *doc* says that the parameter *name* takes what only Python has: bytes, open files, functions."""
    told = rf"[*`']*{re.escape(name)}[*`']*"
    verb = r"(?:[ \t]*(?::|--?)[ \t]*|\s+(?:must be |is |should be )?)"
    behind_kind, before_kind = rf"{_LIVE} {told}(?!\w)", rf"(?:^[ \t]*|\bargument ){told}{verb}{_ARTICLES}{_LIVE}"
    places = re.finditer(f"{behind_kind}|{before_kind}", doc, re.IGNORECASE | re.MULTILINE)
    return any(not _TEXT_TOO.match(doc, place.end()) for place in places)


def _annotated(annotation: Any) -> str:
    """The annotated type, if it is of the standard library and has no JSON form: what derives from others may have."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    members = typing.get_args(annotation) if is_union else (annotation,)
    kinds = [typing.get_origin(member) or member for member in members if member is not types.NoneType]
    if kinds and all(isinstance(kind, type) and _is_closed(kind) and not has_json_form(kind) for kind in kinds):
        return " or ".join(kind.__name__ for kind in kinds)
    return ""


def _is_closed(kind: type) -> bool:
    is_open = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return not is_open and kind.__module__.partition(".")[0] in sys.stdlib_module_names


def _documented(opening: str, function: Callable[..., Any]) -> str:
    """What *opening*, the first paragraph of the documentation, says that is returned and has no JSON form, or ""."""
    if _DECORATOR.match(opening):
        return "decorator"
    if named := _RETURNED.search(opening):
        return named["kind"] or named["made"]
    module = sys.modules.get(getattr(function, "__module__", None) or "", builtins)
    for match in _CLASS.finditer(opening):
        kind = getattr(module, match["name"], None)
        if isinstance(kind, type) and not has_json_form(kind):
            return f"{match['name']} object"
    return ""
