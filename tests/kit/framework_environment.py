"""An environment for each framework that has an adapter, since not all of them agree on the versions they need.

tests/adapters/environments/NAME.txt  what is installed: the framework in the version that is tested
tests/adapters/inside/*.py            what runs there, and prints JSON as its last line

Beside that the environment has what this project needs, and what its extra NAME asks for, if there is one. It is made
once, and kept in the user's cache, or in the folder that TOOLSEARCH_TEST_ENVIRONMENTS names.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from benchmarks.environments import Environment, NotInstalledError, python_in

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "tests" / "adapters"
_GIVEN = os.environ.pop("TOOLSEARCH_TEST_ENVIRONMENTS", None)  # in what the tests start, it would be an unknown setting
_OWN_EXTRAS = re.compile(r"toolsearch\[(.+)\]")
_SPEAKS_TO_NOBODY = {
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}


@dataclass(frozen=True)
class Framework:
    """Where a framework is installed."""

    python: Path

    def run(self, script: str | Path, *arguments: str, cwd: Path | None = None) -> Any:
        """Run a script, from ``tests/adapters/inside`` unless a path is given; return what it printed last, as JSON."""
        return json.loads(self.printed(script, *arguments, cwd=cwd).splitlines()[-1])

    def printed(self, script: str | Path, *arguments: str, cwd: Path | None = None) -> str:
        """Run a script as `run` does; return all that it printed. It is to end well."""
        folders = (ROOT, ROOT / "indexes")
        done = subprocess.run(
            [self.python, ADAPTERS / "inside" / script, *arguments],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONUTF8": "1"} | _SPEAKS_TO_NOBODY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def framework() -> Callable[[str], Framework]:
    """Give the environment of the framework that a file in ``tests/adapters/environments`` is named after."""
    return _framework


def _framework(name: str) -> Framework:
    requires = _requirements(name)
    key = hashlib.sha256("\n".join((platform.python_version(), *requires)).encode()).hexdigest()[:12]
    try:
        return Framework(
            python_in(environments_folder() / f"{name}-{key}", Environment(tuple(requires), sys.executable))
        )
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
