"""A tool's parameters in one line: ``move_file(source*, destination*)``."""

from __future__ import annotations

from toolsearch.documents.json_values import as_object, as_texts
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.summaries import one_line
from toolsearch.wire.sendable_schema import sendable_schema

_MOST_PARAMETERS = 8
_NAME_WIDTH = 40  # characters


def signature_of(definition: ToolDefinition) -> str:
    """The name of the tool and of its parameters, as models are sent them: required ones first, marked with ``*``.

    At most eight parameters are named; of the others, their number.
    """
    names, required = _parameters(sendable_schema(definition.input_schema).schema)
    ordered = [*(f"{_short(name)}*" for name in required), *(_short(name) for name in names if name not in required)]
    shown = ordered[:_MOST_PARAMETERS]
    more = [f"+{len(ordered) - len(shown)} more"] if len(ordered) > len(shown) else []
    return f"{definition.name}({', '.join([*shown, *more])})"


def _parameters(schema: JsonObject) -> tuple[list[str], list[str]]:
    """The names of the properties, and of those that are required."""
    names, required = as_object(schema.get("properties")) or {}, set(as_texts(schema.get("required")))
    return list(names), [name for name in names if name in required]


def _short(name: str) -> str:
    return one_line(name, _NAME_WIDTH)
