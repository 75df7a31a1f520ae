"""How a tool definition is written for a model: the wire formats of model APIs, and when a catalog needs no search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from toolsearch.errors import BadSettingError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject

_Plain: TypeAlias = Callable[[Json], Any]  # makes dicts and lists of whatever mappings and sequences a value is made of
_Writer: TypeAlias = Callable[[ToolDefinition, _Plain], dict[str, Any]]  # what it returns may be changed at its top


def render_definition(definition: ToolDefinition, tool_format: str) -> dict[str, Any]:
    """Return *definition* as one entry of a request's tool list; equal definitions give equal bytes of JSON.

    *tool_format* is "openai" (chat completions), "openai-responses", "anthropic" or "mcp"; another one raises
    BadSettingError. The result is the caller's to change.
    """
    return _writer(tool_format)(definition, _copy)


def render_tools(definitions: Iterable[ToolDefinition], tool_format: str) -> list[dict[str, Any]]:
    """Render each as `render_definition` does, in the given order."""
    return [render_definition(definition, tool_format) for definition in definitions]


class RenderedTools:
    """Definitions in one format, with *extra* in each, written once and given again as long as they are in use.

    For requests that hold thousands of them. What is given is shared with later requests, and with the definitions:
    nobody may change it. At most *max_kept* are kept. Safe to share between threads.
    """

    def __init__(self, tool_format: str, extra: JsonObject, *, max_kept: int = 20_000) -> None:
        self._write = _writer(tool_format)
        self._extra = extra
        self._max_kept = max_kept
        self._kept: dict[int, tuple[ToolDefinition, JsonObject]] = {}  # by id, which is sound while it is held here

    def of(self, definitions: Collection[ToolDefinition]) -> list[JsonObject]:
        """Render each as `render_definition` does, in the given order."""
        kept = self._kept
        rendered: list[JsonObject] = []
        for definition in definitions:
            known = kept.get(id(definition))
            if known is None:
                known = definition, {**self._write(definition, _as_it_is_if_plain), **self._extra}
                kept[id(definition)] = known
            rendered.append(known[1])
        if len(kept) > self._max_kept:
            self._kept = {}  # rare, and simpler than to tell which are still in use
        return rendered


@dataclass(frozen=True, slots=True)
class PassThrough:
    """When a catalog is so small that the model is shown all of it, since searching would cost more than it saves.

    Both bounds have to hold. With ``max_tools=0`` everything is searched for. The defaults are about what the search
    tool itself and two searches cost.
    """

    max_tools: int = 10
    max_tokens: int = 1_500

    def __post_init__(self) -> None:
        if self.max_tools < 0 or self.max_tokens < 0:
            raise BadSettingError(
                f"a pass-through's bounds are 0 or more; got max_tools={self.max_tools}, max_tokens={self.max_tokens}"
            )

    def covers(self, *, tools: int, tokens: int) -> bool:
        """Whether a catalog of that size is shown whole."""
        return tools <= self.max_tools and tokens <= self.max_tokens


def _openai(definition: ToolDefinition, plain: _Plain) -> dict[str, Any]:
    return {"type": "function", "function": _named(definition) | {"parameters": _object_schema(definition, plain)}}


def _openai_responses(definition: ToolDefinition, plain: _Plain) -> dict[str, Any]:
    # This API takes tools as strict unless told otherwise, and strict mode refuses most schemas found in the wild.
    return (
        {"type": "function"} | _named(definition) | {"parameters": _object_schema(definition, plain), "strict": False}
    )


def _anthropic(definition: ToolDefinition, plain: _Plain) -> dict[str, Any]:
    return _named(definition) | {"input_schema": _object_schema(definition, plain)}


def _mcp(definition: ToolDefinition, plain: _Plain) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": definition.name}
    if definition.title:
        tool["title"] = definition.title
    if definition.description:
        tool["description"] = definition.description
    tool["inputSchema"] = plain(definition.input_schema)
    if definition.output_schema is not None:
        tool["outputSchema"] = plain(definition.output_schema)
    if definition.annotations:
        tool["annotations"] = plain(definition.annotations)
    return tool


_WRITERS: Mapping[str, _Writer] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "mcp": _mcp,
}

TOOL_FORMATS = tuple(_WRITERS)


def _writer(tool_format: str) -> _Writer:
    write = _WRITERS.get(tool_format)
    if write is None:
        raise BadSettingError(f"no tool format {tool_format!r}; there are {', '.join(map(repr, TOOL_FORMATS))}")
    return write


def _named(definition: ToolDefinition) -> dict[str, Any]:
    """The title stands in for a missing description, as these formats have no place for it."""
    description = definition.description or definition.title
    return {"name": definition.name, "description": description} if description else {"name": definition.name}


def _object_schema(definition: ToolDefinition, plain: _Plain) -> dict[str, Any]:
    """The input schema as model APIs take it: they refuse the whole request for one tool whose root is no plain object.

    Alternatives at the root are laid over each other, so that the model still reads of every property. Arguments are
    validated by the original.
    """
    schema: dict[str, Any] = dict(plain(definition.input_schema))
    properties: dict[str, Any] = schema.pop("properties", {})
    required: list[str] = schema.pop("required", [])
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in schema.pop(keyword, []):
            known = cast("dict[str, Any]", branch) if isinstance(branch, dict) else {}
            properties = known.get("properties", {}) | properties
            if keyword == "allOf":
                required = required + [name for name in known.get("required", []) if name not in required]
    for keyword in ("not", "enum"):
        schema.pop(keyword, None)
    return schema | {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _copy(value: Json) -> Any:
    """A deep copy of plain dicts and lists, whatever mappings and sequences *value* is made of."""
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list | tuple):
        return [_copy(item) for item in cast("Sequence[Json]", value)]
    return value


def _as_it_is_if_plain(value: Json) -> Any:
    """*value* itself if it is made of plain dicts and lists all through, else a copy that is."""
    if isinstance(value, Mapping):
        fields = cast("JsonObject", value)
        made = {key: _as_it_is_if_plain(item) for key, item in fields.items()}
        is_plain = type(cast("object", fields)) is dict and all(made[key] is item for key, item in fields.items())
        return fields if is_plain else made
    if isinstance(value, list | tuple):
        items = cast("Sequence[Json]", value)
        copied = [_as_it_is_if_plain(item) for item in items]
        is_plain = type(cast("object", items)) is list and all(
            new is old for new, old in zip(copied, items, strict=True)
        )
        return items if is_plain else copied
    return value
