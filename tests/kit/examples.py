"""The examples, started as their readers start them, or in copies of a process that has loaded what they import."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.commands import environment, run_python
from tests.kit.copies import copies

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(*arguments: str, **more: str) -> str:
    """Run Python with *arguments*, as if the package were installed, and return what it prints."""
    return run_python(*arguments, **{"PATH": _path_with_python(), "HF_HUB_OFFLINE": "1", **more}).out


@pytest.fixture(scope="module")
def copied_example() -> Iterator[Callable[..., str]]:
    """Run an example in a copy of a process that has loaded what it imports, and return what it prints.

    Warnings are errors.
    """
    modules = ("anthropic", "faiss", "jsonschema", "openai", "toolsearch.chat", "toolsearch.engine")
    with copies(Path(sys.executable), *modules, options=("-W", "error"), environment=environment()) as process:

        def run(name: str, **more: str) -> str:
            variables = environment(PATH=_path_with_python(), HF_HUB_OFFLINE="1", **more)
            ran = process.run(EXAMPLES / name, environment=variables)
            assert ran.code == 0, ran.err
            return ran.out

        yield run


def _path_with_python() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
