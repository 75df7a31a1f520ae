"""Parts that the requests to all model APIs share: descriptions of tools, the parts of a prompt, and errors.

A schema of plain dicts and lists is sent without a copy; other JSON is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeGuard, cast

from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.definition import NO_PARAMETERS, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject


def name_and_description(definition: ToolDefinition) -> dict[str, Any]:
    """These formats have no place for a title, so it stands in for a missing description."""
    description = definition.description or definition.title
    return {"name": definition.name, "description": description} if description else {"name": definition.name}


def read_definition(fields: JsonObject, schema_key: str) -> ToolDefinition:
    """Return the definition in *fields*, whose schema is under *schema_key*. Titles, annotations and output schemas are
    read although no model API has a place for each of them: listings of tools are written in these formats as well.

    A schema without a type becomes an object's; a missing schema means no parameters. Raises BadToolError, with the
    reason, for anything but a definition.
    """
    name = text_in(fields, "name")
    if not name:
        raise BadToolError("it has no name")
    return ToolDefinition(
        name=name,
        description=text_in(fields, "description"),
        input_schema=_input_schema(fields, schema_key),
        title=text_in(fields, "title"),
        output_schema=as_object(fields.get("output_schema")) or as_object(fields.get("outputSchema")),
        annotations=as_object(fields.get("annotations")) or {},
    )


def _input_schema(fields: JsonObject, key: str) -> JsonObject:
    value = fields.get(key)
    if value is None:
        if fields.get("type", "function") not in ("function", "custom"):
            raise BadToolError(f"it is a tool of its provider, {fields['type']!r}, and has no definition to show")
        return NO_PARAMETERS
    schema = as_object(value)
    if schema is None:
        raise BadToolError(f"its {key} must be an object")
    if not schema:
        return NO_PARAMETERS
    return schema if "type" in schema else {"type": "object", **schema}


def text_in(fields: JsonObject, key: str) -> str:
    """The text under *key*, "" if there is none. Raises BadToolError if something else is there."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadToolError(f"its {key} must be text")
    return value


def refuse_request(what: str, *, api: str) -> NoReturn:
    raise BadArgumentsError(f"this is no request of {api}: {what}")


def objects_in(value: Json, name: str, *, api: str) -> Iterator[JsonObject]:
    """The objects in the list *value*. Raises BadArgumentsError, which names *name*, if it holds anything else."""
    if not isinstance(value, list | tuple):
        refuse_request(f"its {name} must be a list", api=api)
    for number, item in enumerate(cast("list[Json]", value), 1):
        if not isinstance(item, Mapping):
            refuse_request(f"{name} number {number} is not an object", api=api)
        yield cast("JsonObject", item)


class PromptPart(NamedTuple):
    """*is_end* says whether the cached beginning of a prompt may end after this part."""

    value: JsonObject
    is_end: bool


def openai_parts(
    messages: Sequence[JsonObject], *, is_user: Callable[[JsonObject], bool], is_result: Callable[[JsonObject], bool]
) -> Iterator[PromptPart]:
    """From gpt-5.6 on, the cached beginning of a prompt ends with a user's message or with the last of several results.

    Source: developers.openai.com, prompt caching, "Implicit mode".
    """
    for message, next_message in zip(messages, [*messages[1:], None], strict=True):
        is_last_result = is_result(message) and (next_message is None or not is_result(next_message))
        yield PromptPart(message, is_user(message) or is_last_result)


ToPlain: TypeAlias = Callable[[Json], Any]  # `deep_copy` or `itself_if_plain`


def is_plain_object(value: Json) -> TypeGuard[dict[str, Json]]:
    """For values that are plain on every level: asking any value whether it is a mapping takes much longer."""
    return isinstance(value, dict)


def deep_copy(value: Json) -> Any:
    """A deep copy of plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: deep_copy(item) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list | tuple):
        return [deep_copy(item) for item in cast("Sequence[Json]", value)]
    return value


def itself_if_plain(value: Json) -> Any:
    """*value* itself if it consists of plain dicts and lists on every level, else a copy that does."""
    if isinstance(value, Mapping):
        fields = cast("JsonObject", value)
        made = {key: itself_if_plain(item) for key, item in fields.items()}
        is_plain = type(cast("object", fields)) is dict and all(made[key] is item for key, item in fields.items())
        return fields if is_plain else made
    if isinstance(value, list | tuple):
        items = cast("Sequence[Json]", value)
        copied = [itself_if_plain(item) for item in items]
        is_plain = type(cast("object", items)) is list and all(
            new is old for new, old in zip(copied, items, strict=True)
        )
        return items if is_plain else copied
    return value
