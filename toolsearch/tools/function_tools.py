"""Makes tools of Python functions, which stay ordinary functions: `@tool`, `tool_from_function`.

`FunctionToolCallback` makes them of callables that take all arguments as one object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import Any, TypeVar, overload

from toolsearch.errors import BadToolError
from toolsearch.option_values import name_list
from toolsearch.tools.callbacks import FunctionCallback, run_function
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.docstrings import read_docstring
from toolsearch.tools.json_schema import InputType, require_callable_by, require_schema
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import in_words, namespaced, require_legal_name, title_with_name
from toolsearch.tools.results import Converter, require_converter
from toolsearch.tools.signature import is_context, read_signature, type_hints, underlying

AnyFunction = TypeVar("AnyFunction", bound="Callable[..., Any] | classmethod[Any, ..., Any] | staticmethod[..., Any]")
_ATTRIBUTE = "__toolsearch_tool__"


@dataclass(frozen=True, slots=True)
class _Options:
    name: str | None = None
    description: str | None = None
    title: str = ""
    tags: tuple[str, ...] = ()
    annotations: JsonObject = field(default_factory=dict[str, Json])
    metadata: ToolMetadata = field(default_factory=ToolMetadata)
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Carried:
    """The data that `@tool` stores on a function.

    functools.wraps copies it to wrappers of the function; in that case *function* differs from the wrapper.
    """

    function: Callable[..., Any]
    options: _Options
    tool: Tool | None = None  # set for a function outside of classes
    method: tuple[Tool, FunctionCallback] | None = None  # set for a method, to be bound to its object


@overload
def tool(name: AnyFunction, /) -> AnyFunction: ...


@overload
def tool(
    name: str | None = None,
    description: str | None = None,
    *,
    title: str = "",
    tags: Iterable[str] = (),
    annotations: JsonObject | None = None,
    return_direct: bool = False,
    timeout_s: float | None = None,
    result_converter: Converter | None = None,
    examples: Iterable[str] = (),
) -> Callable[[AnyFunction], AnyFunction]: ...


def tool(
    name: Any = None,
    description: str | None = None,
    *,
    title: str = "",
    tags: Iterable[str] = (),
    annotations: JsonObject | None = None,
    return_direct: bool = False,
    timeout_s: float | None = None,
    result_converter: Converter | None = None,
    examples: Iterable[str] = (),
) -> Any:
    """Define a tool by a function's signature and docstring; usable bare (``@tool``) or with options.

    The function can still be called as before; `Catalog` and `tool_from_function` find the definition on it. On a
    method, above or below ``@staticmethod`` and ``@classmethod``, it marks the method for `ToolCallbacks.from_object`.

    name               defaults to the function's name
    description        defaults to the docstring without its part about parameters. If both are empty, it is the name in
                       words: ``get_weather`` is described as "get weather"
    annotations        MCP's hints, such as ``{"readOnlyHint": True}``
    return_direct      the result goes to the caller instead of the model
    timeout_s          seconds that one call may take
    result_converter   a `ToolCallResultConverter`, or a function from the result to the text for the model
    examples           requests of users who need the tool: they are searched, and no model sees them
    Raises BadToolError at once if the function cannot be a tool.
    """
    is_bare = name is not None and not isinstance(name, str)
    options = _Options(
        name=None if is_bare else name,
        description=description,
        title=title,
        tags=name_list(tags, "tags", error=BadToolError),
        annotations=dict(annotations or {}),
        metadata=checked_metadata(ToolMetadata(return_direct, timeout_s, result_converter)),
        examples=name_list(examples, "examples", error=BadToolError),
    )

    def decorate(decorated: Any) -> Any:
        function = _function_in(decorated)
        if _is_in_class_body(function):
            is_static = isinstance(decorated, staticmethod)
            carried = _Carried(function, options, method=_build_method(function, options, is_static=is_static))
        else:
            carried = _Carried(function, options, _build(function, options, server="")[0])
        try:
            setattr(function, _ATTRIBUTE, carried)
        except AttributeError:
            raise BadToolError(
                f"{options.name or function} cannot be marked as a tool; use tool_from_function instead"
            ) from None
        return decorated

    return decorate(name) if is_bare else decorate


def tool_from_function(
    function: Callable[..., Any],
    *,
    server: str = "",
    name: str | None = None,
    description: str | None = None,
    metadata: ToolMetadata | None = None,
    input_schema: JsonObject | None = None,
) -> Tool:
    """Make a tool of *function*, or of a method of an object (``tool_from_function(clock.now)``).

    Omitted options are taken from the function's `@tool`, if it has one. With *server*, the name becomes
    ``<server>__<name>`` and is made legal. *input_schema* is shown to models as it stands, instead of the schema of the
    signature; arguments are still converted to the annotated types. Raises BadToolError if the function cannot be a
    tool, or could not be called as *input_schema* says.
    """
    carried: _Carried | None = getattr(function, _ATTRIBUTE, None)
    has_no_options = not server and all(said is None for said in (name, description, metadata, input_schema))
    if carried is not None and carried.function is function:
        if carried.tool is not None and has_no_options:
            return carried.tool
        _require_bound(function)
    if carried is not None and carried.method is not None and has_no_options and _is_method_of(function, carried):
        made, callback = carried.method
        return replace(made, callback=callback.bound_to(function))
    options = carried.options if carried else _Options()
    if description is not None:
        options = replace(options, description=description)
    if metadata is not None:
        options = replace(options, metadata=checked_metadata(metadata))
    made = _build(function, options, server=server, name=name)[0]
    return made if input_schema is None else _with_schema(made, input_schema)


def is_marked(value: Any) -> bool:
    """Whether `@tool` was put on *value*, which may be a static or class method in the form of the class body."""
    function = _function_in(value)
    return inspect.isroutine(function) and isinstance(getattr(function, _ATTRIBUTE, None), _Carried)


def _function_in(value: Any) -> Any:
    return getattr(value, "__func__", value) if inspect.ismethoddescriptor(value) else value


def checked_metadata(metadata: ToolMetadata) -> ToolMetadata:
    """Return *metadata*. Raises BadToolError for a value that no call could use."""
    if metadata.timeout_s is not None and not metadata.timeout_s > 0:
        raise BadToolError(f"timeout_s must be positive, got {metadata.timeout_s}")
    if metadata.result_converter is not None:
        require_converter(metadata.result_converter)
    return metadata


def _build(
    function: Callable[..., Any], options: _Options, *, server: str, name: str | None = None, skip_first: bool = False
) -> tuple[Tool, FunctionCallback]:
    own_name = name or options.name or str(getattr(underlying(function), "__name__", type(function).__name__))
    full_name = namespaced(server, own_name) if server else own_name
    require_legal_name(full_name)
    try:
        _require_plain(function)
        doc = read_docstring(underlying(function).__doc__)
        signature = read_signature(function, doc.parameters, skip_first=skip_first)
    except BadToolError as error:
        raise BadToolError(f"{own_name} cannot be a tool: {error}") from error
    definition = ToolDefinition(
        name=full_name,
        description=(doc.description if options.description is None else options.description) or in_words(own_name),
        input_schema=signature.input_schema,
        title=title_with_name(options.title, own_name, server),
        annotations=options.annotations,
        server=server,
        tags=options.tags,
        requests=options.examples,
    )
    callback = FunctionCallback(function, signature)
    return Tool(definition, callback, options.metadata, source=source_of(function)), callback


def _with_schema(made: Tool, schema: JsonObject) -> Tool:
    try:
        require_schema(schema)
        require_callable_by(schema, made.definition.input_schema)
    except BadToolError as error:
        raise BadToolError(f"{made.name} cannot be a tool: {error}") from error
    return replace(made, definition=replace(made.definition, input_schema=schema))


def _build_method(
    function: Callable[..., Any], options: _Options, *, is_static: bool
) -> tuple[Tool, FunctionCallback] | None:
    """Return the tool of a method, made once for all objects of its class; None if it can only be made later.

    It is made later for a static method, and if an annotation names a class that is not defined yet. If
    ``@staticmethod`` is applied afterwards, the tool is also made anew, because its first parameter is then an
    argument.
    """
    try:
        made = _build(function, options, server="", skip_first=not is_static)
    except BadToolError as error:
        if error.__cause__ is not None and isinstance(error.__cause__.__cause__, NameError):
            return None
        raise
    return None if is_static else made


def _is_method_of(function: Any, carried: _Carried) -> bool:
    return inspect.ismethod(function) and function.__func__ is carried.function


def _is_in_class_body(function: Any) -> bool:
    """Whether *function* was defined in a class body, rather than in a module or in another function."""
    above = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    return inspect.isfunction(function) and bool(above) and not above.endswith("<locals>")


def _require_bound(function: Callable[..., Any]) -> None:
    """Refuse a method taken from its class; a static method is like a function and passes."""
    first = next(iter(inspect.signature(function).parameters), "")
    if _is_in_class_body(function) and first in ("self", "cls"):
        name = getattr(function, "__qualname__", "it")
        raise BadToolError(f"{name} is a method without its object; make an object of the class and pass its method")


def _require_plain(function: Callable[..., Any]) -> None:
    if inspect.isclass(function):
        raise BadToolError("it is a class; give a function that makes one, or one of its methods")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadToolError("it is a generator; return a list instead")


def source_of(function: Callable[..., Any]) -> str:
    """Say where *function* is defined, for people."""
    below = underlying(function)
    name = getattr(below, "__qualname__", type(function).__qualname__)
    module = getattr(below, "__module__", None)  # None for methods of builtin types
    return f"function {module}.{name}" if module else f"function {name}"


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
        """Raises BadArgumentsError if *arguments* do not make an input, else the function's own error."""
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
        input_schema  shown to the model in place of the input type's; without an input type the function gets a dict
        examples      requests of users who need the tool; they are searched, and no model sees them
        Raises BadToolError if the function has another shape, its input is not a JSON object, or the schema is invalid.
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
    """Return the arguments to pass ("input", "context"), in order, and the input's annotation or else
    Parameter.empty.
    """
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
    """Whether we pass a value for the parameter. Parameters with a default keep it, unless they are a ToolContext."""
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return False
    return parameter.default is Parameter.empty or is_context(hints.get(parameter.name))


def _schema_for(shape: tuple[str, ...], input_type: InputType | None) -> JsonObject:
    if "input" not in shape:
        return {**NO_PARAMETERS, "additionalProperties": False}
    if input_type is None:
        raise BadToolError("its input type is not known; give an input_type, or annotate its first parameter")
    return input_type.schema
