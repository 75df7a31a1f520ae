"""The examples, started as their readers start them."""

import os
import sys
from pathlib import Path

from tests.kit.commands import run_python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(*arguments: str, **environment: str) -> str:
    """Run Python with *arguments*, as if the package were installed, and return what it prints."""
    return run_python(*arguments, **{"PATH": _path_with_python(), "HF_HUB_OFFLINE": "1", **environment}).out


def _path_with_python() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
