"""Functions and modules as sources."""

from __future__ import annotations

import statistics
import sys
from types import ModuleType

import pytest

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.loading import open_source
from toolsearch.errors import SourceError
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.function_tools import tool


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


def reasons_against(module: str | ModuleType) -> dict[str, str]:
    return {
        refusal.name: refusal.reason.partition(" cannot be a tool: ")[2]
        for refusal in Catalog.from_module(module).refused
    }


def test_what_returns_a_python_object_is_refused_with_the_reason() -> None:
    patterns = reasons_against("re")
    made = reasons_against("zlib")["zlib__compressobj"]
    assert made == "it returns a Python object (compressor object), which has no JSON form"
    assert "(Match object)" in patterns["re__search"]
    assert "(iterator)" in patterns["re__finditer"]
    assert "(decorator)" in reasons_against("functools")["functools__lru_cache"]


def test_what_needs_a_live_object_is_refused_with_the_name_of_the_parameter() -> None:
    assert reasons_against("base64")["base64__encode"] == "its parameter 'input' takes a Python object, not JSON"
    assert "its parameter 'fileobj'" in reasons_against("hashlib")["hashlib__file_digest"]
    assert "its parameter 'fsrc'" in reasons_against("shutil")["shutil__copyfileobj"]


@pytest.mark.parametrize(
    ("module", "useful"),
    [
        ("base64", ["b64decode", "b32decode", "urlsafe_b64decode"]),  # they take texts as well
        ("hashlib", ["pbkdf2_hmac"]),  # nothing is known of them
        ("ipaddress", ["ip_address", "ip_network"]),  # what they return has a JSON form
        ("os", ["fspath", "uname", "listdir", "stat"]),
        ("re", ["sub", "split", "findall", "escape"]),
        ("shutil", ["copy", "move", "disk_usage", "which"]),
        ("json", ["loads", "dumps"]),
        ("subprocess", ["check_output", "getoutput"]),
        ("zoneinfo", ["available_timezones"]),
    ],
)
def test_no_function_that_takes_and_returns_json_is_refused(module: str, useful: list[str]) -> None:
    assert {f"{module}__{name}" for name in useful} <= set(Catalog.from_module(module).names())


def test_annotations_and_classes_of_the_module_say_what_is_returned() -> None:
    module = ModuleType("homemade")
    code = """
import dataclasses, re, threading
class Engine: ...
@dataclasses.dataclass
class Order: ...
def thread(name: str) -> threading.Thread: ...
def found(text: str) -> re.Match[str] | None: ...
def either(text: str) -> re.Match[str] | str: ...
def anything(text) -> object: ...
def engine(name):
    "Return a new Engine object."
def order(name):
    "Return the Order object of that name."
def made(name) -> Engine: ...
def loaded(file):
    \'\'\'Load it.

    file : file-like object, string, or path
        Where it is.
    \'\'\'
"""
    exec(code, module.__dict__)  # noqa: S102
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "homemade", module)
        reasons, names = reasons_against(module), Catalog.from_module(module).names()

    # a class of somebody's own may have subclasses with a JSON form
    assert names == [f"homemade__{name}" for name in ("either", "anything", "order", "made", "loaded")]
    assert "(Thread)" in reasons["homemade__thread"]
    assert "(Match)" in reasons["homemade__found"]
    assert "(Engine object)" in reasons["homemade__engine"]
