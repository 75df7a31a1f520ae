"""A tool that a service runs, and which notes each run in a file, so that runs can be counted from outside."""

import os
from pathlib import Path

FILE = "NOTED_CALLS"  # the variable of the environment that names the file


def note(key: str) -> str:
    """Note that this ran."""
    with Path(os.environ[FILE]).open("a") as file:
        file.write(f"{key}\n")
    return key
