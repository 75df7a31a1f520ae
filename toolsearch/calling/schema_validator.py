"""jsonschema, made safe for schemas from strangers: linear patterns, bounded work, and nothing is fetched.

Regular expressions are run by RE2: whatever the pattern, its time is linear in the text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import groupby, islice
from typing import Any, Protocol, TypeAlias, cast

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.errors import BadToolError
from toolsearch.tools.json_types import Json, JsonObject

re2: Any = untyped_re2
logger = logging.getLogger(__name__)
_MAX_LENGTH = 2_000
_MAX_MEMORY_BYTES = 1 << 20


def may_match(pattern: str, text: str) -> bool | None:
    """Whether *pattern* is found anywhere in *text*; None if RE2 cannot run it (lookaround, backreferences).

    The first use of such a pattern is logged, because its texts go unchecked.
    """
    compiled = _compiled(pattern)
    if compiled is None:
        return None
    return compiled.search(text.encode("utf-8", "replace").decode("utf-8")) is not None


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        if len(pattern) > _MAX_LENGTH:
            # Every unusable pattern is handled below.
            raise ValueError(f"longer than {_MAX_LENGTH} characters")  # noqa: TRY301
        return re2.compile(pattern, options)
    except (re2.error, ValueError) as error:
        logger.warning("a schema's pattern is not checked, RE2 cannot run it: %.100r (%.100s)", pattern, error)
        return None


_MAX_STEPS = 100_000  # steps of one validation, which take less than a second
_NOT_CHECKED = ("format", "unevaluatedItems", "unevaluatedProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_steps_left: ContextVar[list[int]] = ContextVar("steps_left")


class Violation(Protocol):
    """The part of jsonschema's ValidationError that we use; the package has no types."""

    message: str
    validator: str | None  # the keyword; None if the schema is ``false``
    validator_value: Json
    instance: Json
    context: Sequence[Violation]  # the violations of each branch of anyOf and oneOf
    relative_path: Sequence[str | int]
    absolute_path: Sequence[str | int]
    schema_path: Sequence[str | int]


Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[Violation] | None]


def violations(schema: JsonObject, instance: Json, *, limit: int) -> list[Violation]:
    """Return at most *limit* violations of the schema in *instance*, in the schema's order.

    Raises BadToolError if the schema refers to something outside it, or takes too much work to check.
    """
    from referencing.exceptions import Unresolvable

    token = _steps_left.set([_MAX_STEPS])
    try:
        return list(islice(_validator(_Identity(schema)).iter_errors(instance), limit))
    except Unresolvable as error:
        raise BadToolError(
            f"the tool's input schema refers to {error.ref!r:.100}, outside the schema, and no reference is fetched"
        ) from error
    except (RecursionError, _OutOfStepsError) as error:
        raise BadToolError(
            "the arguments cannot be checked: they, or the tool's input schema, are too large"
        ) from error
    finally:
        _steps_left.reset(token)


def load_validator() -> None:
    """Load jsonschema, which takes 0.2 s, so that the first call need not wait for it. To be called in a thread."""
    _validator_class()


def branches(violation: Violation) -> list[list[Violation]]:
    """The violations in each alternative of an anyOf or oneOf, in its order; ``[]`` for other keywords."""
    return [list(faults) for _, faults in groupby(violation.context, key=lambda each: each.schema_path[0])]


class _OutOfStepsError(Exception):
    """One validation took too many steps."""


def _spend(steps: int) -> None:
    left = _steps_left.get()
    left[0] -= steps
    if left[0] < 0:
        raise _OutOfStepsError


class _Identity:
    """A schema as the key of a cache, by identity. The key holds the schema, so that its id is not reused."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


@lru_cache(maxsize=1_024)
def _validator(key: _Identity) -> Any:
    from referencing import Registry

    return _validator_class()(key.schema, registry=Registry())  # pyright: ignore[reportUnknownArgumentType]


@cache
def _validator_class() -> Any:
    import attrs
    from jsonschema import validators  # type: ignore[import-untyped]

    jsonschema: Any = validators
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        **dict.fromkeys(_NOT_CHECKED, _nothing),
    }
    standard: Mapping[str, Keyword] = jsonschema.Draft202012Validator.VALIDATORS
    keywords = {name: _guarded(name, check) for name, check in {**standard, **own}.items()}
    made: Any = jsonschema.extend(jsonschema.Draft202012Validator, keywords)
    # jsonschema's own evolve() returns the standard class, which uses Python's re, for a schema with "$schema".
    made.evolve = attrs.evolve
    return made


def _guarded(keyword: str, check: Keyword) -> Keyword:
    """Return *check* with a count of its steps. It checks nothing if the keyword's value is malformed."""
    from jsonschema.exceptions import UnknownType  # type: ignore[import-untyped]

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Violation]:
        _spend(1 + (len(value) // 8 if hasattr(value, "__len__") else 0))
        if isinstance(value, bool) and keyword in _BOUNDS:  # draft 4, where the value is a flag beside "minimum"
            return
        try:
            yield from check(validator, value, instance, schema) or ()
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, UnknownType) as error:
            logger.debug("a schema's %r is not checked, it is malformed: %.100s", keyword, error)

    return checked


# Keywords that jsonschema would check with Python's re or in quadratic time


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Violation]:
    if validator.is_type(instance, "string") and may_match(pattern, instance) is False:
        yield _violation("does not match")


def _pattern_properties(validator: Any, patterns: JsonObject, instance: Any, _schema: Any) -> Iterator[Violation]:
    if not validator.is_type(instance, "object"):
        return
    _spend(len(patterns) * len(instance) // 8)
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if may_match(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Violation]:
    """A name that a pattern might match, but which RE2 cannot test, counts as a match: it is not refused unchecked."""
    if not validator.is_type(instance, "object"):
        return
    named: JsonObject = schema.get("properties", {})
    patterns: JsonObject = schema.get("patternProperties", {})
    _spend(len(patterns) * len(instance) // 8)
    extras = [
        name for name in instance if name not in named and all(may_match(each, name) is False for each in patterns)
    ]
    if allowed is False and extras:
        known = f" (known: {_names(list(named))})" if named else ""
        yield _violation(f"unknown {_names(extras)}{known}")
    elif allowed is not False:
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)


# Jsonschema's signature.
def _unique_items(validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[Violation]:  # noqa: FBT001
    if wanted and validator.is_type(instance, "array") and len({_hashable(item) for item in instance}) < len(instance):
        yield _violation("holds the same item twice")


def _nothing(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> None:
    return None


def _hashable(value: Any) -> object:
    """Equal for equal JSON: 1 and 1.0 are equal, 1 and true are not."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return tuple(map(_hashable, cast("Sequence[Json]", value)))
        case dict():
            return frozenset((key, _hashable(item)) for key, item in cast("JsonObject", value).items())
        case _:
            return value


def _names(names: Sequence[str]) -> str:
    shown = [name if len(name) <= 40 else name[:40] + "..." for name in names[:20]]
    return ", ".join(shown) + (" and more" if len(names) > 20 else "")


def _violation(message: str) -> Violation:
    from jsonschema.exceptions import ValidationError

    return cast("Violation", ValidationError(message))
