"""What holds for the package as a whole: a light import, a sorted surface, and layers."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import toolsearch
from tests.kit.commands import Ran

ROOT = Path(__file__).parents[2]
HEAVY = ("faiss", "fastapi", "jsonschema", "mcp", "numpy", "pydantic", "re2", "rich", "torch", "typer")


@pytest.mark.parametrize(
    "module",
    [
        *("toolsearch", "toolsearch.chat", "toolsearch.errors", "toolsearch.evaluation", "toolsearch.gateway"),
        *("toolsearch.tools.definition", "toolsearch.wire"),
    ],
)
def test_the_import_is_light(module: str, run_python: Callable[..., Ran]) -> None:
    loaded = run_python("-c", f"import sys, {module}; print(*sorted(sys.modules))").out.split()

    assert sorted(set(HEAVY).intersection(loaded)) == []


def test_importing_the_engine_loads_nothing_that_only_an_engine_which_is_made_needs(
    run_python: Callable[..., Ran],
) -> None:
    loaded = run_python("-c", "import sys; from toolsearch import ToolSearch; print(*sorted(sys.modules))").out.split()

    assert sorted({*HEAVY, "rapidfuzz"}.intersection(loaded)) == ["pydantic", "re2"]


def test_the_public_surface_is_sorted_and_seen_by_those_who_ask_for_a_list() -> None:
    assert toolsearch.__all__ == sorted(toolsearch.__all__)
    assert set(toolsearch.__all__) <= set(dir(toolsearch))


def test_everything_that_needs_no_extra_is_imported_without_extras(run_python: Callable[..., Ran]) -> None:
    program = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # as if they were not installed
import toolsearch.gateway
from toolsearch import *
from toolsearch.chat import *
from toolsearch.evaluation import *
from toolsearch.wire import *
assert ToolSearch([len]) and AnthropicModel and toolsearch.gateway.read_gateway_config
for name in ("Gateway", "http_app"):
    try:
        getattr(toolsearch.gateway, name)
    except ImportError as error:
        print(error)
"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    packages = [package for extra in project["optional-dependencies"].values() for package in extra]
    named = {re.split(r"[<>=\[;]", package)[0].replace("-", "_").lower() for package in packages} - {"toolsearch"}
    absent = sorted(named | {"httpx", "jwt", "opentelemetry", "psycopg_pool", "starlette"})
    assert run_python("-c", program, *absent).out == "".join(
        f"toolsearch.gateway.{name} needs packages that are not installed; run: pip install 'toolsearch[mcp]'\n"
        for name in ("Gateway", "http_app")
    )


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = toolsearch.no_such_thing


def test_a_test_that_hangs_fails_in_time(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.hasplugin("timeout")
    assert 0 < float(pytestconfig.getini("timeout")) <= 120


@pytest.mark.usefixtures("processes")
def test_arrows_point_down() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "indexes")])}

    done = subprocess.run([command, "--no-cache"], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
