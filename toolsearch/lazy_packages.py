"""Lets a process import modules of the MCP SDK without running the ``__init__`` of their packages.

Each ``__init__`` imports the SDK's server framework, and with it the cryptography library. A gateway uses neither. They
take 10 MB.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, resolve_name
from pathlib import Path
from types import ModuleType

_SDK = ("mcp", "mcp.client", "mcp.server")


def import_sdk_lazily() -> None:
    """From now on, import a name of an SDK's package when it is first used. Packages that have been imported stay.

    Without the SDK, this does nothing: whoever imports it says what to install.
    """
    with suppress(ModuleNotFoundError):
        for package in _SDK:
            if package not in sys.modules and (spec := find_spec(package)) is not None:
                sys.modules[package] = module = module_from_spec(spec)
                module.__class__ = _LazyPackage
                parent, _, child = package.rpartition(".")
                if parent:
                    setattr(sys.modules[parent], child, module)


class _LazyPackage(ModuleType):
    """A package whose ``__init__`` has not run. It imports each name from where the ``__init__`` would import it."""

    def __getattr__(self, name: str) -> object:
        origin = None if name.startswith("__") else _origins(self.__name__, str(self.__file__)).get(name)
        if origin is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(origin[0]), origin[1])
        setattr(self, name, value)
        return value


@cache
def _origins(package: str, file: str) -> Mapping[str, tuple[str, str]]:
    """Name -> the module that it is imported from, and its name there."""
    statements = ast.parse(Path(file).read_bytes()).body
    return {
        alias.asname or alias.name: (resolve_name("." * each.level + each.module, package), alias.name)
        for each in statements
        if isinstance(each, ast.ImportFrom) and each.module
        for alias in each.names
    }
