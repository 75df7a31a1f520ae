"""`json_schema_of`: the schema that a model would be shown of a function or of a type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from toolsearch.tools.docstrings import read_docstring
from toolsearch.tools.input_type import JsonType
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.signature import read_signature, underlying


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
