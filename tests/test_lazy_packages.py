"""Packages of the MCP SDK whose names are imported when they are first used."""

from collections.abc import Callable

from tests.kit.commands import Ran

_LAZY_THEN_REAL = """
import importlib, sys
from toolsearch.lazy_packages import import_sdk_lazily

names = ("mcp", "mcp.client", "mcp.server")
import_sdk_lazily()
lazy = {name: importlib.import_module(name) for name in names}
for name in names:
    del sys.modules[name]
for name in names:
    real = importlib.import_module(name)
    assert real is not lazy[name]
    assert all(getattr(lazy[name], each) is getattr(real, each) for each in real.__all__), name
    assert not hasattr(lazy[name], "no_such_name")
    print(len(real.__all__) > 0)
"""
_IMPORTED_BEFORE = """
import mcp.server
from toolsearch.lazy_packages import import_sdk_lazily

import_sdk_lazily()
import sys
print(sys.modules["mcp"] is mcp, "MCPError" in vars(mcp))
"""


def test_a_lazy_package_has_the_very_names_that_it_has_when_it_is_imported(run_python: Callable[..., Ran]) -> None:
    assert run_python("-c", _LAZY_THEN_REAL).out.split() == ["True"] * 3


def test_a_package_that_was_imported_before_stays_as_it_is(run_python: Callable[..., Ran]) -> None:
    assert run_python("-c", _IMPORTED_BEFORE).out == "True True\n"
