"""The arguments of a call, from the text that a model wrote to an object."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject


def parse_arguments(arguments: str | JsonObject) -> dict[str, Json]:
    """Return *arguments* as a dict; blank text is an empty one, since models write that for tools without parameters.

    Raises BadArgumentsError, which never quotes the text, if it is not one JSON object.
    """
    if not isinstance(arguments, str):
        return dict(arguments)
    if not arguments.strip():
        return {}
    try:
        parsed: Any = json.loads(arguments, parse_constant=_refuse_constant)
    except BadArgumentsError:  # a ValueError too
        raise
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadArgumentsError(f"the arguments are not valid JSON: {error.msg} at {where}; {_REMEDY}") from error
    except RecursionError as error:
        raise BadArgumentsError("the arguments are nested too deeply") from error
    except ValueError as error:  # an integer of more than 4,300 digits
        raise BadArgumentsError("the arguments hold a number that is too long") from error
    if not isinstance(parsed, dict):
        raise BadArgumentsError(f"the arguments are JSON, but not an object; {_REMEDY}")
    return cast("dict[str, Json]", parsed)


_REMEDY = 'send one JSON object, such as {"parameter": "value"}'


def _refuse_constant(name: str) -> NoReturn:
    raise BadArgumentsError(f"the arguments hold {name}, which JSON does not have; send a number or null")
