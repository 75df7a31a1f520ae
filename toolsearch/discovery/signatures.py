"""A tool's parameters in one line: ``move_file(source*, destination*)``."""

from __future__ import annotations

from toolsearch.documents.json_values import as_list, as_object, as_texts
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.summaries import one_line

_MOST_PARAMETERS = 8
_NAME_WIDTH = 40  # characters


def signature_of(definition: ToolDefinition) -> str:
    """The name of the tool and of its parameters, the required ones first and marked with ``*``.

    At most eight parameters are named; of the others, their number.
    """
    names, required = _parameters(definition.input_schema)
    ordered = [*(f"{_short(name)}*" for name in required), *(_short(name) for name in names if name not in required)]
    shown = ordered[:_MOST_PARAMETERS]
    more = [f"+{len(ordered) - len(shown)} more"] if len(ordered) > len(shown) else []
    return f"{definition.name}({', '.join([*shown, *more])})"


def _parameters(schema: JsonObject) -> tuple[list[str], list[str]]:
    """The names of the properties, at the root and in what holds beside it, and of those that are required."""
    parts = [schema, *filter(None, map(as_object, as_list(schema.get("allOf")) or []))]
    names = list(dict.fromkeys(name for part in parts for name in as_object(part.get("properties")) or {}))
    required = {name for part in parts for name in as_texts(part.get("required"))}
    return names, [name for name in names if name in required]


def _short(name: str) -> str:
    return one_line(name, _NAME_WIDTH)
