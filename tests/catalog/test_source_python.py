"""Functions and modules as sources."""

from __future__ import annotations

import statistics
from types import ModuleType

import pytest

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.loading import open_source
from toolsearch.errors import SourceError
from toolsearch.tools.decorator import tool
from toolsearch.tools.definition import ToolContext


async def test_the_public_functions_of_a_module_become_tools_that_run() -> None:
    catalog = Catalog.from_module("statistics")

    mean = catalog.get("statistics__mean")
    assert mean.definition.server == "statistics"
    assert mean.definition.local_name == "mean"
    assert mean.definition.description.startswith("Return the sample arithmetic mean")
    assert mean.source == "function statistics.mean"
    assert await mean.callback.call({"data": [1, 2, 6]}, ToolContext()) == 3
    assert catalog.server_purpose("statistics") == "Basic statistics module."
    listed = [name for name in statistics.__all__ if callable(getattr(statistics, name))]
    assert len(catalog) == len([name for name in listed if not isinstance(getattr(statistics, name), type)])


def test_a_dotted_module_gives_legal_names() -> None:
    assert Catalog.from_module("os.path").get("os_path__basename").definition.server == "os.path"


def test_what_takes_python_objects_or_has_no_signature_is_refused_by_name() -> None:
    catalog = Catalog.from_module("functools")

    reasons = {refusal.name: refusal.reason for refusal in catalog.refused}
    assert "'cls' takes a Python object" in reasons["functools__total_ordering"]
    assert all(refusal.source == "module functools" for refusal in catalog.refused)


def test_without_all_only_public_functions_of_its_own_count() -> None:
    module = ModuleType("homemade")
    code = (
        "from os.path import join\ndef shown(): ...\ndef _hidden(): ...\nalias = shown\nvalue = 1\nclass Thing: ...\n"
    )
    exec(code, module.__dict__)  # noqa: S102

    assert Catalog.from_module(module).names() == ["homemade__shown", "homemade__alias"]


def test_a_module_that_cannot_be_imported_is_an_error() -> None:
    with pytest.raises(SourceError, match="no_such_thing"):
        open_source("module:no_such_thing").load()


def test_functions_keep_their_order_options_and_server() -> None:
    @tool(name="second")
    def b() -> None: ...

    def a() -> None: ...

    catalog = Catalog.from_functions([a, b, max], server="mine")
    assert catalog.names() == ["mine__a", "mine__second"]
    assert [refusal.name for refusal in catalog.refused] == ["max"]
