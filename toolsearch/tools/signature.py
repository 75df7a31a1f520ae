"""From a Python signature to a JSON Schema, and from JSON arguments back to a Python call."""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from inspect import Parameter
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.byte_parameters import BYTES_NOTE, Bytes, takes_bytes
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.json_schema import UNUSABLE_TYPE, ToolParam, explain, json_bytes, schema_of, why_unusable
from toolsearch.tools.json_types import Json, JsonObject

# Types that a function may return but no model can be sent
_NOT_RESULTS = (Callable, Generator, Iterator, AsyncGenerator, AsyncIterable, AsyncIterator)


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The parameters of one function: the schema that a model sees, and how to call the function with arguments.

    Parameters typed `ToolContext` are filled in by us and not in the schema. ``*args`` is an optional array under its
    own name, ``**kwargs`` allows any other properties, and a parameter without annotation takes bytes, if its function
    says so, or any JSON.
    """

    input_schema: JsonObject
    return_type: Any
    _signature: inspect.Signature
    _model: type[BaseModel]
    _context_names: tuple[str, ...]

    def bind(self, arguments: JsonObject, context: ToolContext) -> inspect.BoundArguments:
        """Convert *arguments* to the annotated types. Raises BadArgumentsError, without repeating their values."""
        try:
            checked = self._model.model_validate_json(json_bytes(arguments))
        except ValidationError as error:
            raise BadArgumentsError(explain(error)) from None  # pydantic's text repeats the values
        extra = checked.model_extra or {}
        for name in extra.keys() & set(self._context_names):  # **kwargs must not replace the real context
            raise BadArgumentsError(f"{name}: is not an argument of this tool")
        bound = self._signature.bind_partial()
        for field_name, info in type(checked).model_fields.items():
            name = str(info.alias)
            if name in arguments or self._signature.parameters[name].default is Parameter.empty:
                bound.arguments[name] = getattr(checked, field_name)
        for name in self._context_names:
            bound.arguments[name] = context
        bound.apply_defaults()
        if extra:
            bound.arguments[list(self._signature.parameters)[-1]] = extra  # **kwargs is the last parameter
        return bound


def read_signature(
    function: Callable[..., Any], descriptions: Mapping[str, str], *, skip_first: bool = False, closed: bool = True
) -> FunctionSignature:
    """Read *function*'s parameters; *descriptions* are used for parameters without a description in their annotation.

    With *skip_first*, the first one is left out: in an unbound method, it is the object. With *closed* false, the
    schema admits further properties wherever no class forbids them. Raises BadToolError, with the reason, for a
    signature that cannot be read or a type that JSON cannot carry.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadToolError(f"its signature cannot be read: {error}") from error
    if skip_first:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    hints = type_hints(function)
    _require_result(hints.get("return"))
    parameters = list(signature.parameters.values())
    context_names = tuple(p.name for p in parameters if is_context(hints.get(p.name, Any)))
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in context_names and parameter.kind is not Parameter.VAR_KEYWORD:
            annotation, description = hints.get(parameter.name, Any), descriptions.get(parameter.name)
            is_first = parameter is parameters[0]
            if parameter.name not in hints and takes_bytes(parameter, underlying(function), is_first=is_first):
                annotation, description = Bytes, " ".join(filter(None, (description, BYTES_NOTE)))
            # Fields are numbered because a pydantic model cannot have some names: schema, _x, copy
            fields[f"p{len(fields)}"] = _model_field(parameter, annotation, description)
    open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    model, schema = _make_model(fields, open_ended=open_ended or not closed, closed=closed)
    return FunctionSignature(schema, hints.get("return", Any), signature, model, context_names)


def _require_result(annotation: Any) -> None:
    if (typing.get_origin(annotation) or annotation) in _NOT_RESULTS:
        raise BadToolError(f"it returns {annotation}, and that has no JSON form; return a value or a list instead")


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations with their names resolved.

    Raises BadToolError if one cannot be: from a NameError, if a name is not defined, or not yet.
    """
    owner = underlying(function)
    if not hasattr(owner, "__annotations__"):
        return {}  # a builtin function
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except Exception as error:  # string annotations are evaluated, so anything may be raised
        raise BadToolError(f"its annotations cannot be resolved: {error}") from error


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that has the annotations and the docstring: inside a partial, or an object's ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def is_context(annotation: Any) -> bool:
    """Whether a parameter of this type is filled in by us."""
    if typing.get_origin(annotation) in (Annotated, typing.Union, types.UnionType):
        return any(is_context(part) for part in typing.get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)


def _model_field(parameter: Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
    """Return the pydantic field (annotation, FieldInfo) of a parameter."""
    if isinstance(parameter.default, FieldInfo | ToolParam):
        kind = type(parameter.default).__name__.removesuffix("Info")
        raise BadToolError(
            f"parameter {parameter.name!r} has a {kind} as its default; write "
            f"{parameter.name}: Annotated[<type>, {kind}(...)] and a plain default"
        )
    if parameter.default is not Parameter.empty and not _field_info(annotation).is_required():
        raise BadToolError(f"parameter {parameter.name!r} has two defaults, its own and the Field's; keep one")
    annotation, param = _without_param(annotation)
    own = param.description or _own_description(annotation)
    settings: dict[str, Any] = {"alias": parameter.name}
    if own or (description and not _field_info(annotation).description):
        settings["description"] = own or description
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return list[annotation], Field(default_factory=list, **settings)
    if parameter.default is None:
        annotation = annotation | None if annotation is not Any else Any
    if _is_required(parameter, annotation, param):
        return annotation, Field(..., **settings)
    if parameter.default is Parameter.empty:
        if not _field_info(annotation).is_required():
            return annotation, Field(**settings)
        return annotation, Field(default_factory=_unset, **settings)
    # The function uses its own default. Pydantic would copy it, and some defaults (sentinels, modules) cannot be
    # copied.
    return annotation, Field(default_factory=_unset, json_schema_extra=_shown_default(parameter.default), **settings)


def _without_param(annotation: Any) -> tuple[Any, ToolParam]:
    """Return *annotation* and the ToolParam that was in its ``Annotated``, if any."""
    extras: Sequence[Any] = getattr(annotation, "__metadata__", ())
    params = [extra for extra in extras if isinstance(extra, ToolParam)]
    if not params:
        return annotation, ToolParam()
    others = [extra for extra in extras if not isinstance(extra, ToolParam)]
    plain: Any = annotation.__origin__
    return (Annotated[(plain, *others)] if others else plain), params[-1]


def _is_required(parameter: Parameter, annotation: Any, param: ToolParam) -> bool:
    if param.required is not None:
        return param.required
    has_default = parameter.default is not Parameter.empty or not _field_info(annotation).is_required()
    return not has_default and not _admits_none(annotation)


def _admits_none(annotation: Any) -> bool:
    if typing.get_origin(annotation) is Annotated:
        return _admits_none(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(_admits_none(part) for part in typing.get_args(annotation))
    return annotation is None or annotation is types.NoneType


def _own_description(annotation: Any) -> str:
    """Return the bare string of ``Annotated[int, "how many"]``, which pydantic ignores."""
    texts = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)]
    return texts[0] if texts else ""


def _field_info(annotation: Any) -> FieldInfo:
    """Return the pydantic Field in the ``Annotated``; an empty one if there is none."""
    extras: Iterable[Any] = getattr(annotation, "__metadata__", ())
    return next((extra for extra in extras if isinstance(extra, FieldInfo)), FieldInfo())


def _unset() -> None:
    return None


def _shown_default(default: Any) -> dict[str, Json]:
    """Return the schema's ``default`` keyword, or nothing if the value has no JSON form.

    An absolute path belongs to this machine: it means nothing to a model and should stay private.
    """
    if isinstance(default, str) and PurePath(default).is_absolute():
        return {}
    try:
        shown = to_jsonable_python(default)
        json.dumps(shown, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return {}
    return {"default": shown}


def _make_model(fields: Mapping[str, Any], *, open_ended: bool, closed: bool) -> tuple[type[BaseModel], JsonObject]:
    extra: Literal["allow", "forbid"] = "allow" if open_ended else "forbid"
    config = ConfigDict(extra=extra, protected_namespaces=(), val_json_bytes="base64")
    try:
        model = create_model("Arguments", __config__=config, **fields)
        return model, {"type": "object", "properties": {}, **schema_of(TypeAdapter(model), closed=closed)}
    except UNUSABLE_TYPE as error:
        name, reason = _first_unusable(fields) or ("?", error)
        raise BadToolError(f"parameter {name!r} has a type that JSON cannot carry: {why_unusable(reason)}") from error


def _first_unusable(fields: Mapping[str, Any]) -> tuple[str, Exception] | None:
    for annotation, info in fields.values():
        try:
            schema_of(TypeAdapter(annotation))
        except UNUSABLE_TYPE as error:
            return info.alias, error
    return None
