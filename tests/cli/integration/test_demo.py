"""The demo, end to end: what it tells is true, the same at each run, and all that it says it does is done."""

import io
import json
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from toolsearch.cli import main, output
from toolsearch.cli.demo_story import BUDGET, _folded


def demo(*arguments: str) -> str:
    """Run the demo and return what it prints."""
    with redirect_stdout(io.StringIO()) as out:
        assert main(["demo", *arguments]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def report():
    return json.loads(demo("--json"))


def without_times(report):
    if isinstance(report, dict):
        return {key: without_times(value) for key, value in report.items() if key != "seconds"}
    return [without_times(value) for value in report] if isinstance(report, list) else report


def test_the_demo_shows_every_step_on_one_screen_and_a_half(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # as pytest-xdist sets it
    shown = demo()

    for step in ("before", "after", "Ways to search", "A conversation", "OpenAI's format", "saved", "Try next"):
        assert step in shown
    assert "not available" not in shown  # an encoder is built in
    assert "nothing: no tool fits" in shown
    assert len(shown.splitlines()) < 85


def test_the_demo_is_the_same_at_each_run_but_for_times(report):
    assert without_times(json.loads(demo("--json"))) == without_times(report)


def test_the_model_of_the_demo_finds_what_it_calls_and_gets_its_results(report):
    conversation = report["conversation"]

    calls = [call["function"]["name"] for each in conversation for call in each["reply"].get("tool_calls", [])]
    results = [message["content"] for each in conversation for message in each["appended"]]
    by_call = [(name, result) for name, result in zip(calls, results, strict=True) if name != "toolSearchTool"]
    assert by_call == [
        ("statistics__median", "3"),
        ("calendar__weekday", "6"),  # Monday is 0
        ("statistics__median", "4.5"),
        ("textwrap__shorten", "Hello [...]"),
        ("calendar__isleap", "false"),
    ]
    for each in conversation:
        shown = each["shown"]
        assert all(call["function"]["name"] in shown for call in each["reply"].get("tool_calls", []))


def test_the_demo_evicts_what_was_used_longest_ago(report):
    last = report["conversation"][-1]

    assert len(last["shown"]) - 1 - len(last["evicted"]) == BUDGET.low_water * BUDGET.max_tools
    assert last["evicted"] == ["calendar__weekday"]  # called in an earlier turn than the others
    assert "statistics__median" not in last["evicted"]  # called in a later turn than it was found in


def test_the_savings_of_the_demo_add_up(report):
    savings = report["savings"]

    assert savings["requests"] == len(report["conversation"]) == 11
    assert savings["search_rounds"] == 3
    assert savings["all_tools_tokens"] == 8 * report["before"]["tokens"]  # a search makes a request more, not a saving
    definitions = sum(exchange["tokens"] for exchange in report["conversation"])
    assert savings["sent_tokens"] > definitions  # and the searches so far, with each request
    assert savings["saved_tokens"] == savings["all_tools_tokens"] - savings["sent_tokens"] - savings["written_tokens"]
    assert report["before"]["tools"] > 300


def test_an_encoder_that_cannot_be_had_is_told_plainly():
    report = json.loads(demo("--json", "--encoder", "onnx:/no/such/model"))

    unavailable = {search["strategy"]: search["unavailable"] for search in report["searches"] if search["unavailable"]}
    assert unavailable.keys() == {"semantic", "hybrid"}
    assert "/no/such/model" in unavailable["semantic"]


def test_the_demo_takes_real_mcp_servers_and_outlives_a_dead_one(tmp_path):
    servers = {
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "gone": {"command": "/nowhere/at/all"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    report = json.loads(demo("--json", "--mcp", str(tmp_path / "mcp.json")))

    assert [(server["name"], server["tools"]) for server in report["servers"]] == [("time", 2), ("gone", 0)]
    (in_time,) = (search for search in report["searches"] if search["strategy"] == "in time")
    assert sorted(name for name, _ in in_time["found"]) == ["time__convert_time", "time__get_current_time"]


def test_a_missing_config_is_an_error(capsys, tmp_path):
    assert main(["demo", "--mcp", str(tmp_path / "none.json")]) == 3
    assert capsys.readouterr().err.startswith("error [source_error]: ")


def test_each_command_to_try_next_works_as_it_is_printed_where_only_the_package_is_installed(tmp_path):
    """One after the other, and none is wrapped, however narrow the terminal is."""
    absent = tmp_path / "absent"
    for extra in ("mcp", "onnxruntime", "openai", "anthropic"):
        (absent / extra).mkdir(parents=True)
        (absent / extra / "__init__.py").write_text(f"raise ModuleNotFoundError('no {extra}', name={extra!r})")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(absent), *filter(None, sys.path)]),
        "PATH": os.defpath,
        "COLUMNS": "60",
    }
    start = f"{sys.executable} -m toolsearch"

    def run(command):
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, cwd=tmp_path)

    shown = run(f"{start} demo").stdout
    printed = shown.partition("Try next")[2].replace(" \\\n", " ")
    commands = [line.strip() for line in printed.splitlines() if line.strip().startswith(start)]
    done = [run(command) for command in commands]

    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 4
    assert "urllib_parse__urlparse" in done[0].stdout
    assert done[2].stdout.strip() == "3"


@pytest.mark.parametrize(
    ("argv", "path", "said"),
    [
        ("{bin}/toolsearch", "{bin}", "toolsearch"),
        ("{bin}/toolsearch", "/usr/bin", "{bin}/toolsearch"),
        ("{bin}/toolsearch", "{other}", "{bin}/toolsearch"),
        ("/x/toolsearch/__main__.py", "{bin}", f"{shlex.quote(sys.executable)} -m toolsearch"),
    ],
)
def test_commands_are_told_as_this_one_was_started(tmp_path, monkeypatch, argv, path, said):
    places = {"bin": str(tmp_path / "bin"), "other": str(tmp_path / "other")}
    for place in places.values():
        program = Path(place, "toolsearch")
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [argv.format(**places)])
    monkeypatch.setenv("PATH", path.format(**places))

    assert output.program() == said.format(**places)


def test_the_demo_is_plain_text_where_there_is_no_terminal(run_python):
    done = run_python("-m", "toolsearch", "demo")

    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out


def test_what_to_try_next_fits_80_columns_wherever_the_program_is():
    command = (
        "/home/somebody/projects/assistants/.venv/bin/toolsearch search 'parse a web address' --source urllib.parse"
    )

    folded = _folded(command)

    assert max(map(len, folded.splitlines())) <= 80
    assert shlex.split(folded.replace("\\\n", " ")) == shlex.split(command)
    assert _folded("toolsearch tokens") == "    toolsearch tokens"


def test_a_program_of_the_working_directory_is_told_from_there(tmp_path, monkeypatch):
    program = tmp_path / ".venv" / "bin" / "toolsearch"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/usr/bin")

    assert output.program() == "./.venv/bin/toolsearch"
