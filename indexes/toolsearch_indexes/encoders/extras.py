"""Libraries that only an extra installs: imported where they are used, missed with the command that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from toolsearch_indexes.errors import MissingExtraError


def require(module: str, *, what: str, extra: str) -> Any:
    """Import *module*, untyped, since type checkers must pass without it.

    Raises MissingExtraError naming *what* needs it and which *extra* has it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error
