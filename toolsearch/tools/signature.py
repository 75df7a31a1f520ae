"""From a Python signature to a JSON Schema, and from JSON arguments back to a Python call."""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.definition import Json, JsonObject, ToolContext

_MAX_ERRORS_TOLD = 5


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The parameters of one function as a model and as Python see them.

    Parameters typed `ToolContext` are filled in by us. ``*args`` is an optional array under its own name, ``**kwargs``
    admits any further properties, and a parameter without annotation takes any JSON.
    """

    input_schema: JsonObject
    _signature: inspect.Signature
    _model: type[BaseModel]
    _context_names: tuple[str, ...]

    def bind(self, arguments: JsonObject, context: ToolContext) -> inspect.BoundArguments:
        """Convert *arguments* to the annotated types. Raises BadArgumentsError, without repeating their values."""
        try:
            checked = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise BadArgumentsError(_explain(error)) from None  # pydantic's own text repeats the values
        extra = checked.model_extra or {}
        for name in extra.keys() & set(self._context_names):  # **kwargs would let it take the place of the real one
            raise BadArgumentsError(f"{name}: is not an argument of this tool")
        bound = self._signature.bind_partial()
        for field_name, info in type(checked).model_fields.items():
            if info.alias and info.alias in arguments:
                bound.arguments[info.alias] = getattr(checked, field_name)
        for name in self._context_names:
            bound.arguments[name] = context
        bound.apply_defaults()
        if extra:
            bound.arguments[list(self._signature.parameters)[-1]] = extra  # **kwargs comes last
        return bound


def read_signature(function: Callable[..., Any], descriptions: Mapping[str, str]) -> FunctionSignature:
    """Read *function*'s parameters; *descriptions* serve those that are not described in their annotation.

    Raises BadToolError, with the reason, for a signature that cannot be read or a type that JSON cannot carry.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadToolError(f"its signature cannot be read: {error}") from error
    hints = _type_hints(function)
    parameters = list(signature.parameters.values())
    context_names = tuple(p.name for p in parameters if _is_context(hints.get(p.name, Any)))
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in context_names and parameter.kind is not Parameter.VAR_KEYWORD:
            annotation = hints.get(parameter.name, Any)
            # Fields are numbered, since parameters may have names that a pydantic model cannot: schema, _x, copy
            fields[f"p{len(fields)}"] = _model_field(parameter, annotation, descriptions.get(parameter.name))
    open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    model, schema = _make_model(fields, open_ended=open_ended)
    return FunctionSignature(schema, signature, model, context_names)


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    owner = underlying(function)
    if not hasattr(owner, "__annotations__"):
        return {}  # a builtin
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except Exception as error:  # string annotations are evaluated, so anything may be raised
        raise BadToolError(f"its annotations cannot be resolved: {error}") from error


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what holds the annotations and the docstring: below partials, and ``__call__`` of other objects."""
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def _is_context(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (Annotated, typing.Union, types.UnionType):
        return any(_is_context(part) for part in typing.get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)


def _model_field(parameter: Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
    """Return the pydantic field (annotation, FieldInfo) of a parameter."""
    if isinstance(parameter.default, FieldInfo):
        raise BadToolError(
            f"parameter {parameter.name!r} has a pydantic Field as its default; write "
            f"{parameter.name}: Annotated[<type>, Field(...)] and a plain default"
        )
    own = _own_description(annotation)
    settings: dict[str, Any] = {"alias": parameter.name}
    if own or (description and not _has_field_description(annotation)):
        settings["description"] = own or description
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return list[annotation], Field(default_factory=list, **settings)
    if parameter.default is Parameter.empty:
        return annotation, Field(**settings)
    if parameter.default is None:
        annotation = annotation | None if annotation is not Any else Any
    # The real default is the function's own; pydantic would copy it, and some (sentinels, modules) cannot be copied.
    return annotation, Field(default_factory=_unset, json_schema_extra=_shown_default(parameter.default), **settings)


def _own_description(annotation: Any) -> str:
    """Return the bare string of ``Annotated[int, "how many"]``, which pydantic ignores."""
    texts = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)]
    return texts[0] if texts else ""


def _has_field_description(annotation: Any) -> bool:
    extras: Iterable[Any] = getattr(annotation, "__metadata__", ())
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _unset() -> None:
    return None


def _shown_default(default: Any) -> dict[str, Json]:
    """Return the schema's ``default`` keyword, or nothing where JSON has no such value."""
    try:
        shown = to_jsonable_python(default)
        json.dumps(shown, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return {}
    return {"default": shown}


def _make_model(fields: Mapping[str, Any], *, open_ended: bool) -> tuple[type[BaseModel], JsonObject]:
    config = ConfigDict(extra="allow" if open_ended else "forbid", protected_namespaces=())
    try:
        model = create_model("Arguments", __config__=config, **fields)
        return model, _schema_of(model)
    except PydanticUserError as error:
        name, reason = _culprit(fields) or ("?", error)
        first_sentence = str(reason).splitlines()[0].split(". ")[0]
        raise BadToolError(f"parameter {name!r} has a type that JSON cannot carry: {first_sentence}") from error


def _culprit(fields: Mapping[str, Any]) -> tuple[str, PydanticUserError] | None:
    for annotation, info in fields.values():
        try:
            TypeAdapter(annotation).json_schema(schema_generator=_CompactSchema)
        except PydanticUserError as error:
            return info.alias, error
    return None


class _CompactSchema(GenerateJsonSchema):
    """Without the titles that pydantic derives from names: they cost tokens and say nothing new."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as the base class has it

    def union_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse a union none of whose members can be JSON; pydantic would give a schema that nothing fits."""
        made = super().union_schema(schema)
        if made.get("anyOf") == []:
            raise PydanticInvalidForJsonSchema("None of its alternatives can be JSON")
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _schema_of(model: type[BaseModel]) -> dict[str, Json]:
    schema = model.model_json_schema(schema_generator=_CompactSchema)
    schema.pop("title", None)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    schema.setdefault("properties", {})
    return schema


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{_place(problem['loc'])}: {problem['msg']}" for problem in problems[:_MAX_ERRORS_TOLD]]
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "arguments"
