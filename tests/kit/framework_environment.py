"""An environment for each framework that has an adapter, since not all of them agree on the versions they need.

tests/adapters/environments/NAME.txt  what is installed: the framework in the version that is tested
tests/adapters/inside/*.py            what runs there, and prints JSON as its last line

Beside that the environment has what this project needs, and what its extra NAME asks for, if there is one. It is made
once, and kept in the user's cache, or in the folder that TOOLSEARCH_TEST_ENVIRONMENTS names.

Loading a framework takes most of a script's time, so all scripts of a test module run in copies of one process.
"""

import hashlib
import json
import os
import platform
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from benchmarks.environments import Environment, NotInstalledError, python_in
from tests.kit.copies import Copies, copies

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "tests" / "adapters"
_GIVEN = os.environ.pop("TOOLSEARCH_TEST_ENVIRONMENTS", None)  # in what the tests start, it would be an unknown setting
_OWN_EXTRAS = re.compile(r"toolsearch\[(.+)\]")
_LOADED = {  # beside adapters
    "": ("anthropic", "openai"),
    "google-adk": ("google.adk.agents", "google.adk.runners"),
    "langchain": ("langchain_anthropic", "langchain_openai"),
    "pydantic-ai": ("pydantic_ai.models.anthropic", "pydantic_ai.models.openai"),
}
_SPEAKS_TO_NOBODY = {
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}


@dataclass(frozen=True)
class Framework:
    """Where a framework is installed, and the process whose copies run scripts there."""

    python: Path
    copies: Copies

    def run(self, script: str | Path, *arguments: str, cwd: Path | None = None) -> Any:
        """Run a script, from ``tests/adapters/inside`` unless a path is given; return what it printed last, as JSON."""
        return json.loads(self.printed(script, *arguments, cwd=cwd).splitlines()[-1])

    def printed(self, script: str | Path, *arguments: str, cwd: Path | None = None) -> str:
        """Run a script as `run` does; return all that it printed. It is to end well."""
        done = self.copies.run(ADAPTERS / "inside" / script, *arguments, cwd=cwd, environment=_environment())
        assert done.code == 0, done.err
        return done.out


@pytest.fixture(scope="module")
def framework() -> Iterator[Callable[[str], Framework]]:
    """Give the environment of the framework that a file in ``tests/adapters/environments`` is named after.

    That of "" is the one at hand.
    """
    with ExitStack() as ending:

        @cache
        def framework(name: str) -> Framework:
            python = _python_of(name) if name else Path(sys.executable)
            return Framework(python, ending.enter_context(copies(python, *_loaded(name), environment=_environment())))

        yield framework


def _environment() -> dict[str, str]:
    folders = (ROOT, ROOT / "indexes")
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONUTF8": "1"} | _SPEAKS_TO_NOBODY


def _loaded(name: str) -> Sequence[str]:
    """What scripts in the environment of *name* import: the adapter, if there is one, the framework and the engine."""
    adapter = name.replace("-", "_")
    has_adapter = (ROOT / "toolsearch" / "adapters" / f"{adapter}.py").exists()
    return [*_LOADED.get(name, ()), *([f"toolsearch.adapters.{adapter}", "toolsearch.engine"] if has_adapter else [])]


def _python_of(name: str) -> Path:
    requires = _requirements(name)
    key = hashlib.sha256("\n".join((platform.python_version(), *requires)).encode()).hexdigest()[:12]
    try:
        return python_in(environments_folder() / f"{name}-{key}", Environment(tuple(requires), sys.executable))
    except NotInstalledError as error:
        pytest.skip(f"the environment of {name} cannot be installed here: {error}")


def environments_folder() -> Path:
    return Path(_GIVEN) if _GIVEN else platformdirs.user_cache_path("toolsearch") / "test-environments"


def _requirements(name: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_extra = _of_extra(name, project["optional-dependencies"])
    tested = (ADAPTERS / "environments" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return sorted({*project["dependencies"], *of_extra, *(line for line in tested if line)})


def _of_extra(name: str, extras: Mapping[str, list[str]]) -> list[str]:
    """What an extra asks for, with what it takes from other extras of this project."""
    asked: list[str] = []
    for each in extras.get(name, ()):
        own = _OWN_EXTRAS.fullmatch(each)
        asked += [every for other in own[1].split(",") for every in _of_extra(other, extras)] if own else [each]
    return asked
