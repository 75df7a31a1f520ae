"""docs/command-line.md names every command, option, exit code and key of a record."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from toolsearch.cli.app import command_line
from toolsearch.cli.command_line import ExitCode

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
OF_ALL = {"--quiet", "-q", "--verbose", "-v"}
SAME_AS_EVALUATE = "bench quality"


def commands(group: Any = None, *path: str) -> Iterator[tuple[str, Any]]:
    for name, command in (group or typer.main.get_command(command_line())).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name]), command


COMMANDS = {name: command for name, command in commands() if not name.startswith("gateway")}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_row_with_all_its_options_and_no_other(name: str) -> None:
    [row] = re.findall(rf"^\| `toolsearch {name}(?: [^`]*)?` .*$", PAGE, re.MULTILINE)
    has = {
        option for each in COMMANDS[name].params if each.param_type_name == "option" for option in each.opts
    } - OF_ALL
    has -= {"--settings"} if name == "serve" else set()  # another name of --config
    if name == SAME_AS_EVALUATE:
        has = set()

    assert set(re.findall(r"--[a-z-]+", row.rpartition("| ")[2] or row)) >= has
    assert set(re.findall(r"--[a-z-]+", row)) <= has


def test_the_options_of_all_commands_are_named() -> None:
    for option in ("-q", "-v", "-V", "--install-completion", "--show-completion"):
        assert f"{option}`" in PAGE or f" {option}" in PAGE


def test_each_exit_code_has_a_row_and_no_other() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == sorted(ExitCode)
