"""Which types of values have a JSON form that a model could be sent."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import PurePath

from pydantic import TypeAdapter

from toolsearch.tools.input_type import UNUSABLE_TYPE
from toolsearch.tools.output import ToolOutput

_OURS = (str, bytes, bytearray, memoryview, Enum, PurePath, Mapping, MappingView, AbstractSet, Sequence, ToolOutput)
_WRITTEN_BY = ("__pydantic_serializer__", "_asdict", "tolist")


@functools.cache
def has_json_form(kind: type[object]) -> bool:
    """Whether instances of *kind* can be results of calls. A subclass of *kind* may have a form where it has none."""
    if issubclass(kind, _OURS) or dataclasses.is_dataclass(kind) or any(hasattr(kind, name) for name in _WRITTEN_BY):
        return True
    if issubclass(kind, type) or hasattr(kind, "__next__"):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            TypeAdapter(kind)
    except UNUSABLE_TYPE:
        return False
    return True
