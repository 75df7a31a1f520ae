"""What the command line makes of slips: wrong words, empty values, folders, wrong files, an early Ctrl-C."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.commands import Ran
from toolsearch.errors import EncoderError

FORECAST = {"name": "forecast", "description": "The weather of tomorrow", "inputSchema": {"type": "object"}}


@pytest.fixture
def run(command, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """Run a command in a directory that holds a listing of one tool."""
    monkeypatch.chdir(tmp_path)
    Path("listing.json").write_text(json.dumps([FORECAST]))
    return command


@pytest.mark.parametrize(
    ("words", "same_as"),
    [
        (["help"], ["--help"]),
        (["help", "index"], ["index", "--help"]),
        (["gateway", "help"], ["gateway", "--help"]),
        (["help", "bench", "speed"], ["bench", "speed", "--help"]),
        (["version"], ["--version"]),
    ],
)
def test_help_and_version_may_be_asked_for_by_a_word(run, words, same_as):
    assert run(*words) == run(*same_as)
    assert run(*words).code == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["statistcs"], "No such command 'statistcs'. See 'toolsearch --help'."),
        (["help", "demoo"], "No such command 'demoo'. Did you mean 'demo'? See 'toolsearch --help'."),
        (["gateway", "version"], "No such command 'version'. See 'toolsearch gateway --help'."),
        (["show"], "Missing argument 'name'. See 'toolsearch show --help'."),
    ],
)
def test_wrong_usage_says_where_help_is(run, words, hint):
    ran = run(*words)

    assert (ran.code, ran.err) == (2, f"error [usage]: {hint}\n")


def test_help_names_no_type_of_a_flag_and_the_table_of_settings(run):
    for words in (["--help"], ["index", "--help"], ["gateway", "import", "--help"], ["usage", "reset", "--help"]):
        assert "<bool>" not in run(*words).out
    assert "[toolsearch.search]" in " ".join(run("index", "--help").out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["index", "listing.json", "--to", ""], "--to"),
        (["index", "listing.json", "--to="], "--to"),
        (["search", "weather", "--source", ""], "--source"),
        (["serve", "--data", ""], "--data"),
        (["gateway", "check", "--config", ""], "--config"),
    ],
)
def test_an_option_without_a_value_is_refused_and_writes_nothing(run, arguments, option):
    ran = run(*arguments)

    assert ran.code == 2
    assert ran.err.startswith(f"error [usage]: Invalid value for '{option}': it is empty")
    assert [path.name for path in Path().iterdir()] == ["listing.json"]


def test_a_folder_or_a_pattern_means_its_files(run):
    Path("tools").mkdir()
    for name in ("b.json", "a.json", ".hidden.json", "notes.txt"):
        Path("tools", name).write_text(json.dumps([FORECAST | {"name": f"of_{name.partition('.')[0]}"}]))

    for spec in ("tools", "tools/*.json"):
        sources = run("sources", spec, "--json").json["sources"]
        assert [(each["source"], each["tools"]) for each in sources] == [("tools/a.json", 1), ("tools/b.json", 1)]
    assert run("index", "mine=tools").code == 0
    assert {each["name"] for each in run("search", "weather", "--json").json["results"]} == {"mine__of_a", "mine__of_b"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("empty", "'empty' is a folder: give each of its files that ends in one of .json, "),
        ("empty/*.json", "'empty/*.json' matches no file"),
        ("", "a source has no name"),
        ("statistcs", "did you mean statistics?"),
        ("text.json", "text.json holds a text, not a list of tool definitions"),
    ],
)
def test_what_is_no_source_is_refused_with_what_to_give(run, source, reason):
    Path("empty").mkdir()
    Path("text.json").write_text('"listing.json"')  # the name of a file that could be read

    ran = run("index", source)

    assert ran.code == 3
    assert reason in ran.err


def test_a_query_needs_no_quotes(run):
    searched = run("search", "weather", "of", "tomorrow", "--source", "listing.json", "--json").json

    assert searched["query"] == "weather of tomorrow"
    assert [each["name"] for each in searched["results"]] == ["forecast"]


def test_an_encoder_that_is_named_and_cannot_be_had_is_an_error(run, monkeypatch):
    def refuse(spec: object) -> None:
        raise EncoderError(f"no model {spec}")

    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", refuse)
    for arguments in (["index", "listing.json"], ["search", "weather", "--source", "listing.json"]):
        ran = run(*arguments, "--encoder", "nonsense")
        assert (ran.code, ran.out, ran.err) == (3, "", "error [encoder_error]: no model nonsense\n")
    assert not Path(".toolsearch", "CURRENT").exists()

    ran = run("search", "weather", "--source", "listing.json")  # nobody has named one
    assert ran.code == 0
    assert "indexed by keyword only: " in ran.err


@pytest.mark.parametrize(
    ("arguments", "file", "reason"),
    [
        (["evaluate", "nofile", "--source", "textwrap"], "nofile", "No such file or directory"),
        (["evaluate", ".", "--source", "textwrap"], ".", "Is a directory"),
        (["evaluate", "--propose", "1", "--out", "no/file", "--source", "textwrap"], "no/file", "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(run, arguments, file, reason):
    ran = run(*arguments)

    assert ran.code == 3
    assert ran.err.startswith(f"error [file_error]: '{file}' cannot be read or written: {reason}")


def test_each_server_that_is_refused_is_named_with_its_reason(run):
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"a": {}, "b": {"url": 5}}}))

    ran = run("index", "mcp.json")

    assert ran.code == 3
    assert "a: 'command' must be" in ran.err
    assert "b: 'url' must be" in ran.err


CTRL_C_WHILE_IMPORTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["toolsearch", "--version"]
from toolsearch.cli import main
sys.exit(main())
"""


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("module", ["typing", "typer", "toolsearch.cli.app"])
def test_ctrl_c_while_commands_are_imported_ends_in_silence(module):
    script = CTRL_C_WHILE_IMPORTING.format(module=module)
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(script)], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.usefixtures("processes")
def test_ctrl_c_goes_on_being_ignored_where_a_shell_has_it_ignored():
    script = CTRL_C_WHILE_IMPORTING.format(module="typer")
    ignoring = _with_path(f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{script}")
    done = subprocess.run([sys.executable, "-S", "-c", ignoring], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("toolsearch")


def _with_path(script: str) -> str:
    """*script*, which imports what this process does, without the modules that site loads at the start."""
    return f"import sys; sys.path[:] = {[each for each in sys.path if each]!r}\n{script}"


def test_a_module_that_a_service_cannot_import_is_one_line_and_makes_no_data(run):
    ran = run("serve", "--tools", "module:nosuch_module", "--data", "data", "--bind", "127.0.0.1:0")

    assert (ran.code, ran.out) == (3, "")
    assert (
        ran.err == "error [source_error]: module 'nosuch_module' cannot be imported: No module named 'nosuch_module'\n"
    )
    assert not Path("data").exists()
