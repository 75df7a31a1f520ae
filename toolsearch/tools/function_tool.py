"""`FunctionToolCallback`: tools made of callables that take all arguments as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Any

from toolsearch.errors import BadToolError
from toolsearch.option_values import name_list
from toolsearch.tools.callbacks import run_function
from toolsearch.tools.decorator import checked_metadata, source_of
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.docstrings import read_docstring
from toolsearch.tools.given_schema import require_schema
from toolsearch.tools.input_type import InputType
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import in_words, require_legal_name
from toolsearch.tools.signature import is_context, type_hints, underlying


class FunctionToolCallback:
    """A `ToolCallback` for a function of no argument, of an input, of a `ToolContext`, or of both in this order."""

    def __init__(self, function: Callable[..., Any], input_type: InputType | None, shape: tuple[str, ...]) -> None:
        self._function = function
        self._input_type = input_type
        self._shape = shape

    @property
    def return_type(self) -> Any:
        return type_hints(self._function).get("return", Any)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        """Raises BadArgumentsError if *arguments* do not make an input, else whatever the function raises."""
        values: dict[str, Any] = {"context": context}
        if "input" in self._shape:
            values["input"] = self._input_type.parse(arguments) if self._input_type else dict(arguments)
        return await run_function(self._function, *(values[part] for part in self._shape))

    @staticmethod
    def build(
        name: str,
        function: Callable[..., Any],
        *,
        description: str | None = None,
        input_type: Any = None,
        input_schema: JsonObject | None = None,
        title: str = "",
        tags: Iterable[str] = (),
        annotations: JsonObject | None = None,
        metadata: ToolMetadata | None = None,
        examples: Iterable[str] = (),
    ) -> Tool:
        """Make a tool of *function*, plain or async: ``f(input)``, ``f(input, context)``, ``f()`` or ``f(context)``.

        description   defaults to the function's docstring without its sections, and without one to the name in words
        input_type    pydantic model, dataclass, TypedDict or dict; defaults to the annotation of the first parameter
        input_schema  is shown to the model in place of the input type's; alone, the function gets a plain dict
        examples      what users ask for when they need the tool; they are searched, and no model is shown them
        Raises BadToolError if the function has another shape, its input is no JSON object, or the schema is none.
        """
        require_legal_name(name)
        try:
            shape, annotation = _shape_of(function)
            wanted = annotation if input_type is None else input_type
            parsed = InputType(wanted) if "input" in shape and wanted is not Parameter.empty else None
            schema = _schema_for(shape, parsed) if input_schema is None else require_schema(input_schema)
        except BadToolError as error:
            raise BadToolError(f"{name} cannot be a tool: {error}") from error
        if description is None:
            description = read_docstring(underlying(function).__doc__).description
        definition = ToolDefinition(
            name,
            description or in_words(name),
            schema,
            title=title,
            tags=name_list(tags, "tags", error=BadToolError),
            annotations=dict(annotations or {}),
            requests=name_list(examples, "examples", error=BadToolError),
        )
        callback = FunctionToolCallback(function, parsed, shape)
        return Tool(definition, callback, checked_metadata(metadata or ToolMetadata()), source=source_of(function))


def _shape_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], Any]:
    """Return what to pass ("input", "context"), in order, and the input's annotation or else Parameter.empty."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadToolError(f"its signature cannot be read: {error}") from error
    hints = type_hints(function)
    parameters = [each for each in signature.parameters.values() if _is_wanted(each, hints)]
    if not parameters:
        return (), Parameter.empty
    first = hints.get(parameters[0].name, Parameter.empty)
    if len(parameters) == 1:
        return (("context",), Parameter.empty) if is_context(first) else (("input",), first)
    if len(parameters) == 2 and is_context(hints.get(parameters[1].name, ToolContext)):
        return ("input", "context"), first
    raise BadToolError("it must take nothing, an input, or an input and a ToolContext; use @tool for other functions")


def _is_wanted(parameter: Parameter, hints: Mapping[str, Any]) -> bool:
    """Whether we pass a value for it. Parameters with a default keep it, unless they are a ToolContext."""
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return False
    return parameter.default is Parameter.empty or is_context(hints.get(parameter.name))


def _schema_for(shape: tuple[str, ...], input_type: InputType | None) -> JsonObject:
    if "input" not in shape:
        return {**NO_PARAMETERS, "additionalProperties": False}
    if input_type is None:
        raise BadToolError("what it takes is not known; give an input_type, or annotate its first parameter")
    return input_type.schema
