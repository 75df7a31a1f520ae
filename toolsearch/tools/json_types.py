"""What JSON is to a type checker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any  # whatever json.loads gives
JsonObject: TypeAlias = Mapping[str, Json]
