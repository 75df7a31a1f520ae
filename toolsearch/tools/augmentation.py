"""Argument augmentation: the model fills in more arguments than the tool has, and the application reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from toolsearch.errors import BadToolError
from toolsearch.tools.callbacks import run_callback, run_function
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext, ToolDefinition
from toolsearch.tools.json_schema import InputType
from toolsearch.tools.json_types import Json, JsonObject, free_name, with_refs
from toolsearch.tools.providers import as_tools

Arguments = TypeVar("Arguments")


@dataclass(frozen=True, slots=True)
class AugmentedArguments(Generic[Arguments]):
    """The arguments that a consumer gets before the tool runs.

    definition     the definition as the model read it, with the added arguments
    raw_arguments  all arguments that the model sent, including the tool's own
    arguments      the added arguments, as a value of the model class
    """

    definition: ToolDefinition
    raw_arguments: JsonObject
    arguments: Arguments
    context: ToolContext


Consumer: TypeAlias = Callable[[AugmentedArguments[Arguments]], Awaitable[None] | None]


def augmented(tool: Tool, model: type[Arguments], consumer: Consumer[Arguments], *, remove: bool = True) -> Tool:
    """Return *tool* with the fields of *model* (pydantic, dataclass, TypedDict) among its arguments.

    A field is required if the model says so. *consumer*, plain (in a worker thread) or async, gets their values; if it
    raises, the call fails and the tool does not run. Otherwise the tool then runs without these arguments.

    With *remove* false it runs with them, so it must take any arguments or have parameters of these names. If it has
    such a parameter, the model reads the field's description of it.

    Everything else about the tool stays the same, such as ``return_direct``. Raises BadToolError if the tool cannot be
    called, has a parameter of a field's name or, with *remove* false, does not take one of the fields.
    """
    if tool.callback is None:
        raise BadToolError(f"{tool.name} cannot be augmented: it has no way to run")
    fields = InputType(model)
    own: JsonObject = tool.definition.input_schema
    if remove:
        _require_no_clash(tool.name, own, fields.schema["properties"])
    else:
        _require_taken(tool.name, own, fields.schema["properties"])
    definition = replace(tool.definition, input_schema=_joined(own, fields.schema))
    callback = _AugmentedCallback(tool.callback, definition, fields, consumer, remove=remove)
    # The spec is empty because the tool's source would give the original tool.
    return replace(tool, definition=definition, callback=callback, spec="")


def _require_no_clash(name: str, own: JsonObject, fields: JsonObject) -> None:
    clashes = fields.keys() & own.get("properties", {}).keys()
    if clashes:
        raise BadToolError(
            f"{name} cannot be augmented: it has a parameter {min(clashes)!r} already; rename the model's field, or "
            "hand it on with remove=False"
        )


def _require_taken(name: str, own: JsonObject, fields: JsonObject) -> None:
    refused = fields.keys() - own.get("properties", {}).keys()
    if refused and own.get("additionalProperties") is False:
        raise BadToolError(
            f"{name} cannot be augmented with remove=False: it does not take {min(refused)!r}; give its function a "
            "parameter of this name or **kwargs, or leave remove=True"
        )


class AugmentedToolProvider:
    """Augments the tools of anything that `as_tools` takes, anew at each request for them."""

    def __init__(
        self, *things: object, model: type[Arguments], consumer: Consumer[Arguments], remove: bool = True
    ) -> None:
        self._things = things
        self._augment: Callable[[Tool], Tool] = lambda tool: augmented(tool, model, consumer, remove=remove)

    def tools(self) -> list[Tool]:
        """Raises the errors of `as_tools` and `augmented`."""
        return [self._augment(tool) for tool in as_tools(*self._things)]


class _AugmentedCallback:
    def __init__(
        self,
        inner: ToolCallback,
        definition: ToolDefinition,
        fields: InputType,
        consumer: Consumer[Any],
        *,
        remove: bool,
    ) -> None:
        self._inner = inner
        self._definition = definition
        self._fields = fields
        self._consumer = consumer
        self._remove = remove

    @property
    def return_type(self) -> Any:
        return getattr(self._inner, "return_type", Any)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        names = self._fields.schema["properties"].keys()
        further = self._fields.parse({name: value for name, value in arguments.items() if name in names})
        event = AugmentedArguments(self._definition, arguments, further, context)
        await run_function(self._consumer, event)
        own = {name: value for name, value in arguments.items() if name not in names}
        return await run_callback(self._inner, own if self._remove else arguments, context)


def _joined(own: JsonObject, further: JsonObject) -> JsonObject:
    """Return *own* with the properties of *further* after its own; definitions with the same name are renamed."""
    definitions: dict[str, Json] = dict(own.get("$defs", {}))
    new: JsonObject = further.get("$defs", {})
    namesakes = [name for name in new if name in definitions]
    # If one differs, all are renamed: an equal definition may refer to a different one.
    is_all_equal = all(new[name] == definitions[name] for name in namesakes)
    taken = {**definitions, **new}
    renamed = {} if is_all_equal else {name: free_name(name, taken) for name in namesakes}
    moved = with_refs(further, renamed)
    moved_definitions: JsonObject = moved.get("$defs", {})
    definitions |= {renamed.get(name, name): definition for name, definition in moved_definitions.items()}
    required = list(dict.fromkeys([*own.get("required", ()), *moved.get("required", ())]))
    return {
        **own,
        "properties": {**own.get("properties", {}), **moved["properties"]},
        **({"required": required} if required else {}),
        **({"$defs": definitions} if definitions else {}),
    }
