"""Reads a function's description and its parameters' from a docstring, and shows the schema that a model would see.

Google, NumPy, Sphinx and Epydoc styles are read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import docstring_parser

from toolsearch.tools.json_schema import JsonType
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.signature import read_signature, underlying


@dataclass(frozen=True, slots=True)
class FunctionDoc:
    """*description* is the text before and between the sections; the parameters' texts go by parameter name."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> FunctionDoc:
    """Read the docstring *text*. A docstring in no known style is used as the description unchanged."""
    clean = inspect.cleandoc(text or "").strip()
    if not clean:
        return FunctionDoc()
    try:
        parsed = docstring_parser.parse(clean)
    except docstring_parser.ParseError:
        return FunctionDoc(clean)
    if not parsed.meta:
        return FunctionDoc(clean)
    parameters = {
        name.strip().lstrip("*"): _one_paragraph(parameter.description)
        for parameter in parsed.params
        if parameter.description
        for name in parameter.arg_name.split(",")  # NumPy allows "x, y : float"
    }
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return FunctionDoc("\n\n".join(parts) if parts else "", parameters)


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def json_schema_of(thing: Any, *, additional_properties: bool = False) -> JsonObject:
    """Return the JSON Schema (2020-12) of a function's arguments, as `@tool` makes it, or of a type's values.

    Objects admit only the properties that they name, unless their class says otherwise; with *additional_properties*
    they admit any, unless their class forbids it.
    Raises BadToolError, with the reason, for a signature that cannot be read or a type that JSON cannot carry.
    """
    closed = not additional_properties
    if inspect.isroutine(thing) or isinstance(thing, functools.partial):
        function = cast("Callable[..., Any]", thing)
        doc = read_docstring(underlying(function).__doc__)
        return read_signature(function, doc.parameters, closed=closed).input_schema
    return JsonType(thing, closed=closed).schema
