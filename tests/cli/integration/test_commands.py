"""The command line on real sources: what it prints, where, and the exit code."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.kit.commands import Ran
from tests.kit.lines import has_line
from toolsearch import Catalog
from toolsearch_indexes.encoders.static import HashingEncoder

LISTING = [
    {
        "name": "forecast",
        "description": "Weather of a city [bold]tomorrow[/]\x1b[31m",
        "input_schema": {"type": "object"},
    },
    {"name": "broken", "input_schema": 3},
]


@pytest.fixture
def run(command, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture
def indexed(run, tmp_path) -> Callable[..., Ran]:
    """The same, where .toolsearch holds two modules and a listing."""
    (tmp_path / "listing.json").write_text(json.dumps(LISTING))
    assert run("index", "statistics", "module:textwrap", "listing.json").code == 0
    return run


@pytest.fixture
def spawn(start_python, tmp_path) -> Callable[..., subprocess.Popen[str]]:
    """Start the command in an empty directory."""
    return partial(start_python, "-m", "toolsearch", cwd=tmp_path)


def test_indexing_says_what_was_taken_and_what_it_costs(run, tmp_path):
    (tmp_path / "listing.json").write_text(json.dumps(LISTING))

    report = run("index", "textwrap", "listing.json", "--to", "here", "--json").json

    assert (report["index"], report["tools"]) == ("here", 6)
    assert report["strategies"] == ["hybrid", "keyword", "semantic", "regex"]
    assert [(source["source"], source["tools"]) for source in report["sources"]] == [
        ("textwrap", 5),
        ("listing.json", 1),
    ]
    assert [refusal["name"] for refusal in report["refused"]] == ["broken"]
    assert report["tokens"] > 500
    assert report["bytes"] == sum(path.stat().st_size for path in Path("here").rglob("*") if path.is_file())


def test_a_dead_source_is_reported_and_costs_no_other(run):
    ran = run("index", "textwrap", "missing.json")

    assert ran.code == 0
    assert "5 tools" in ran.out
    assert has_line(ran.err, "warning: missing.json")
    assert [refusal["name"] for refusal in run("sources", "--json").json["refused"]] == ["missing.json"]


def test_no_readable_source_at_all_is_an_error_and_leaves_no_index(run):
    ran = run("index", "missing.json", "no_such_module")

    assert ran.code == 3
    message = ran.err.splitlines()[-1]
    assert message.startswith("error [source_error]: ")
    assert message.count("missing.json") == message.count("no_such_module") == 1
    assert not Path(".toolsearch").exists()


def test_indexing_again_embeds_only_what_is_new(run, monkeypatch):
    embedded = []

    class Counting(HashingEncoder):
        def encode_documents(self, texts):
            embedded.append(len(texts))
            return super().encode_documents(texts)

    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", lambda _spec: Counting())

    run("index", "textwrap", "--encoder", "some-model")
    run("index", "textwrap", "--encoder", "some-model")
    run("index", "textwrap", "colorsys", "--encoder", "some-model")

    # Three texts of each function of textwrap, its module's name, and four requests each; those of colorsys say nothing
    # but their names, and have requests as well.
    assert embedded == [15, 1, 20, 12, 1, 24]


def test_a_search_prints_names_scores_and_summaries(indexed):
    ran = indexed("search", "weather of a city")

    assert ran.code == 0
    assert has_line(ran.err, "4 more", "--all")
    row = next(line for line in ran.out.splitlines() if "forecast" in line)
    assert "Weather of a city [bold]tomorrow[/]" in row  # no markup of ours


def test_what_a_tool_says_of_itself_cannot_steer_the_terminal(indexed):
    assert "\x1b" not in indexed("search", "weather").out
    assert "\x1b" not in indexed("show", "forecast").out


def test_a_search_takes_the_exact_forms_a_server_and_rules(indexed):
    def names(*arguments: str) -> list[str]:
        return [result["name"] for result in indexed("search", *arguments, "--json").json["results"]]

    assert names("select:textwrap__wrap,statistics__mode") == ["textwrap__wrap", "statistics__mode"]
    assert names("/median_(low|high)/") == ["statistics__median_high", "statistics__median_low"]
    assert names("/median/", "--deny", "*_low", "--deny", "*_high", "--limit", "1") == ["statistics__median"]
    assert names("/./", "--allow", "textwrap__f*", "--server", "textwrap") == ["textwrap__fill"]


def test_a_search_by_name_says_which_names_mean_no_tool_with_near_ones_in_reach(indexed):
    query = "select:statistics__mode,statistics__medan,nope"
    allowed = ("--deny", "statistics__median", "--allow", "statistics__*")
    told = indexed("search", query).err

    assert has_line(told, "statistics__medan; did you mean statistics__median")
    assert "No tool is named nope." in told
    assert "did you mean statistics__median?" not in indexed("search", query, *allowed).err
    assert indexed("search", query, "--json").json["not_found"] == ["statistics__medan", "nope"]
    assert "not_found" not in indexed("search", "select:statistics__mode", "--json").json


def test_a_search_explains_what_it_found_and_tools_asked_about(indexed):
    ran = indexed("search", "median", "--limit", "1", "--explain", "--tool", "nobody", "--json")

    found = ran.json["results"][0]["name"]
    assert [(one["tool"], one["place"]) for one in ran.json["explained"]] == [(found, 1), ("nobody", None)]
    assert ran.json["explained"][1]["outcome"] == "no such tool"


def test_places_and_scores_are_explained_as_the_table_has_them(run):
    """One of these tools has its place for its words alone."""
    for limit in ("3", "5", "9"):
        ran = run("search", "deviation rates", "--source", "statistics", "--explain", "--limit", limit, "--json")
        hits, explained = ran.json["results"], ran.json["explained"]

        assert [one["place"] for one in explained] == list(range(1, len(hits) + 1))
        assert [one["score"] for one in explained] == [hit["score"] for hit in hits]
    assert "by its words" in {one["outcome"] for one in explained}
    assert "place 5, by its words" in run("search", "deviation rates", "--source", "statistics", "--explain").out


def test_a_search_without_an_index_reads_the_sources_given(run):
    ran = run("search", "median of numbers", "--source", "statistics", "--limit", "1", "--json")

    assert [result["name"] for result in ran.json["results"]] == ["statistics__median"]


def test_nothing_found_is_exit_code_1_and_says_so_on_stderr(indexed):
    ran = indexed("search", "zzyzx")

    assert (ran.code, ran.out) == (1, "")
    assert "Nothing fits" in ran.err
    empty = indexed("search", "zzyzx", "--json")
    assert (empty.code, empty.json["results"], empty.err) == (1, [], "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["search", "/(/"], 2, "error [bad_pattern]: the pattern '('"),
        (["search", ""], 2, "error [bad_query]: the query is empty"),
        (
            ["search", "x", "--strategy", "hybird"],
            2,
            "error [usage]: Invalid value for '--strategy': unknown strategy 'hybird'; use one of auto, hybrid",
        ),
        (["search", "x", "--server", "none"], 2, "error [bad_query]: there is no server 'none'; there are: statistics"),
        (["search", "x", "--allow", "of:x"], 2, "error [bad_setting]: cannot use the reach rule 'of:x'"),
        (["search", "x", "--allow", "kind:x"], 2, "error [bad_setting]: there is no kind 'x'; there are tool, skill"),
        (["search", "x", "--limit", "0"], 2, "error [usage]: Invalid value for '--limit'"),
        (["search", "x", "--index", "nowhere"], 3, "error [index_store_error]: nowhere is no index directory"),
        (["search", "x", "--index", "a", "--source", "b"], 2, "error [bad_setting]: give either --index or --source"),
        (["show", "statistics__medain"], 1, "error [unknown_tool]: no tool named 'statistics__medain'; did you mean"),
        (["show", "forecast", "--format", "xml"], 2, "error [bad_setting]: no tool format 'xml'"),
        (["call", "statistics__medain"], 1, "error [unknown_tool]: no tool named 'statistics__medain'; did you mean"),
        (["call", "statistics__mean", "[1]"], 2, "error [bad_arguments]: the arguments are JSON, but not an object"),
        (["call", "statistics__mean", '{"data":'], 2, "error [bad_arguments]: the arguments are not valid JSON"),
        (["call", "statistics__mean", '{"x": 1}'], 2, "error [bad_arguments]: the arguments do not fit the schema"),
        (
            ["call", "statistics__mean", "@none.json"],
            2,
            "error [bad_arguments]: 'none.json' with the arguments cannot be read: No such file",
        ),
        (
            ["call", "statistics__mean", '{"data": []}'],
            1,
            "error [tool_failed]: mean requires at least one data point",
        ),
        (["call", "forecast"], 1, "error [tool_failed]: the tool 'forecast' can be found, but not called"),
        (["serach"], 2, "error [usage]: No such command 'serach'. Did you mean 'search'"),
        (["show"], 2, "error [usage]: Missing argument"),
    ],
)
def test_a_failure_is_one_line_on_stderr_and_an_exit_code(indexed, arguments, code, message):
    ran = indexed(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["search", "/(/"], "bad_pattern"), (["show", "nothing"], "unknown_tool"), (["search", "x", "--nope"], "usage")],
)
def test_under_json_a_failure_is_an_object_on_stderr(indexed, arguments, code):
    ran = indexed(*arguments, "--json")

    assert ran.out == ""
    assert json.loads(ran.err)["error"]["code"] == code


def test_a_missing_index_is_an_error_that_says_how_to_make_one(run):
    ran = run("search", "anything")

    assert ran.code == 2
    assert "'toolsearch index SOURCE...'" in ran.err


def test_a_damaged_catalog_is_an_error_and_indexing_again_mends_it(indexed):
    (catalog,) = Path(".toolsearch").glob("*/catalog.sqlite")
    catalog.write_bytes(b"nothing of a database")

    ran = indexed("search", "median")
    assert ran.code == 3
    assert ran.err.startswith("error [index_store_error]: the index in")
    assert ran.err.endswith("catalog.sqlite has changed; index it again\n")
    assert indexed("index", "statistics").code == 0
    assert indexed("search", "median").code == 0


def test_damaged_arrays_are_rebuilt_with_a_warning(indexed):
    for array in Path(".toolsearch").glob("*/*.npy"):
        array.write_bytes(b"nothing of an array")

    ran = indexed("search", "median of numbers", "--limit", "1")

    assert ran.code == 0
    assert "statistics__median" in ran.out
    assert ran.err.startswith("warning: the stored index is not used")


@pytest.mark.parametrize("place", range(0, 200, 20))
def test_damage_to_what_says_how_an_index_was_made_is_an_error_that_is_told(indexed, place):
    (file,) = Path(".toolsearch").glob("*/generation.json")
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)

    ran = indexed("search", "median")

    assert ran.code == 3
    assert ran.err.endswith("generation.json has changed; index it again\n")


def test_an_index_without_meaning_is_searched_as_it_is(run):
    made = run("index", "statistics", "--strategy", "keyword", "--json").json
    before = {path: path.read_bytes() for path in Path(".toolsearch").rglob("*") if path.is_file()}

    ran = run("search", "median of numbers", "--limit", "1", "--json")

    assert made["strategies"] == ["keyword", "regex"]
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["strategy"], ran.json["notes"]) == ("keyword", [])
    assert [found["name"] for found in ran.json["results"]] == ["statistics__median"]
    assert {path: path.read_bytes() for path in Path(".toolsearch").rglob("*") if path.is_file()} == before


def test_a_tool_is_shown_with_its_costs_and_in_every_format(indexed):
    facts = indexed("show", "statistics__median", "--json").json

    assert facts["source"] == "function statistics.median"
    assert facts["is_callable"]
    assert len(facts["fingerprint"]) == 64
    assert 50 < facts["tokens"] < 500
    assert indexed("show", "forecast", "--format", "openai").json["function"]["name"] == "forecast"
    assert "inputSchema" in indexed("show", "forecast", "--format", "mcp").json
    shown = indexed("show", "statistics__median").out
    assert "Return the median (middle value) of numeric data." in shown
    assert f"{facts['tokens']}, as raw JSON" in shown


def test_a_tool_of_a_stored_index_is_called(indexed, monkeypatch):
    Path("arguments.json").write_text('{"data": [1, 2, 4]}')
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"data": [5, 5, 6]}'))

    assert indexed("call", "statistics__median", '{"data": [3, 1, 2]}').out == "2\n"
    assert indexed("call", "statistics__median", "@arguments.json").out == "2\n"
    assert indexed("call", "statistics__mode", "-").out == "5\n"


def test_a_call_as_json_has_the_result_whether_or_not_it_failed(indexed):
    good = indexed("call", "statistics__multimode", '{"data": [1, 1, 2, 2]}', "--json")
    bad = indexed("call", "statistics__median", '{"data": []}', "--json")

    assert (good.code, good.json["structured"], good.json["is_error"]) == (0, [1, 2], False)
    assert (bad.code, bad.json["error_code"], bad.err) == (1, "tool_failed", "")


def test_what_a_tool_prints_is_no_part_of_the_output(run):
    ran = run("call", "calendar__prmonth", '{"theyear": 1969, "themonth": 7}', "--source", "calendar", "--json")

    assert ran.json["is_error"] is False
    assert "July 1969" in ran.err


def test_sources_tell_what_was_taken_and_what_was_refused(indexed):
    now = indexed("sources", "textwrap", "listing.json", "nowhere.json", "--json").json
    kept = indexed("sources", "--json").json

    assert [(source["tools"], bool(source["error"])) for source in now["sources"]] == [
        (5, False),
        (1, False),
        (0, True),
    ]
    assert [refusal["name"] for refusal in now["refused"]] == ["broken", "nowhere.json"]
    assert [(source["server"], source["tools"]) for source in kept["sources"]] == [
        ("statistics", len(Catalog.from_module("statistics"))),
        ("textwrap", 5),
        ("", 1),
    ]
    assert kept["refused"] == [
        {"name": "broken", "source": "listing.json", "reason": "its input_schema must be an object"}
    ]
    assert "its input_schema" in indexed("sources").out


def test_what_models_are_sent_otherwise_is_told_by_tokens_and_show(run, tmp_path):
    schema = {"type": "object", "properties": {"first name": {"$ref": "#/gone"}}}
    (tmp_path / "listing.json").write_text(
        json.dumps([{"name": "greet", "description": "Greet.", "input_schema": schema}])
    )
    notes = [
        "its parameter 'first name' is called 'first_name'",
        "first name: the reference to '#/gone' leads nowhere, and nothing is fetched",
    ]

    assert run("tokens", "--source", "listing.json", "--json").json["sent_otherwise"] == [
        {"name": "greet", "notes": notes}
    ]
    assert "Sent otherwise than written" in run("tokens", "--source", "listing.json").out
    assert run("show", "greet", "--source", "listing.json", "--json").json["sent_otherwise"] == notes
    assert "'first_name'" in run("show", "greet", "--source", "listing.json").out


def test_tokens_add_up(indexed):
    report = indexed("tokens", "--top", "2", "--json").json

    kept = len(Catalog.from_module("statistics")) + len(Catalog.from_module("textwrap")) + 1
    assert report["tools"] == sum(server["tools"] for server in report["servers"]) == kept
    assert report["tokens"] == sum(server["tokens"] for server in report["servers"])
    first, second = report["most_expensive"]
    assert first["tokens"] >= second["tokens"]
    assert first["tokens"] == indexed("show", first["name"], "--json").json["tokens"]
    assert report["search_tool_tokens"] < 250
    assert "raw JSON" in indexed("tokens").out


@pytest.mark.usefixtures("processes")
def test_a_relative_source_is_found_again_from_elsewhere(run, tmp_path, monkeypatch):
    config = {"mcpServers": {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    assert run("index", "mcp.json", "--to", "kept").code == 0
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")

    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    ran = run("call", "time__convert_time", json.dumps(arguments), "--index", "../kept")

    assert ran.code == 0
    assert json.loads(ran.out)["time_difference"] == "+9.0h"


@pytest.mark.usefixtures("processes")
def test_sources_tell_how_each_mcp_server_fares(run, tmp_path):
    servers = {
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "gone": {"command": "/nowhere/at/all"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers, "color": "red"}))

    ran = run("sources", "mcp.json", "--json")

    (source,) = ran.json["sources"]
    assert [(server["name"], server["state"], server["tools"]) for server in source["servers"]] == [
        ("time", "ready", 2),
        ("gone", "failed", 0),
    ]
    [warning] = source["warnings"]
    assert "'color'" in warning
    assert "'/nowhere/at/all'" in run("sources", "mcp.json").out.replace("\n", " ")


def test_a_module_of_the_working_directory_can_be_a_source(spawn, tmp_path):
    (tmp_path / "bakery.py").write_text("def bake(loaves: int) -> int:\n    return loaves * 2\n")

    process = spawn("call", "bakery__bake", '{"loaves": 3}', "--source", "bakery")

    assert process.communicate() == ("6\n", "")
    assert process.returncode == 0


SLEEP = "def sleep() -> None:\n    print('asleep', flush=True)\n    time.sleep(60)\n"


@pytest.mark.parametrize(
    "nap", ["def nap() -> None:\n    sleep()\n", "async def nap() -> None:\n    await asyncio.to_thread(sleep)\n"]
)
def test_ctrl_c_ends_a_call_that_would_not_end(spawn, tmp_path, nap):
    (tmp_path / "bed.py").write_text(f"import asyncio, time\n\n{SLEEP}\n{nap}")
    process = spawn("call", "bed__nap", "--source", "bed")
    assert process.stderr is not None
    assert process.stderr.readline() == "asleep\n"

    process.send_signal(signal.SIGINT)

    assert process.communicate(timeout=20) == ("", "error [interrupted]: stopped by Ctrl-C\n")
    assert process.returncode == 130


@pytest.mark.parametrize("arguments", [["tokens", "--source", "math", "--json"], ["tokens", "--source", "math"]])
def test_a_reader_that_goes_away_ends_a_command_quietly(spawn, arguments):
    process = spawn(*arguments)
    assert process.stdout is not None
    process.stdout.close()

    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 1
    process.stderr.close()


def test_any_text_can_be_printed_in_any_encoding(spawn, tmp_path, monkeypatch):
    (tmp_path / "odd.py").write_text("def odd() -> str:\n    return chr(0xE9) + chr(0x4E2D)\n")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    as_text = spawn("call", "odd__odd", "--source", "odd").communicate()
    as_json = spawn("call", "odd__odd", "--source", "odd", "--json").communicate()

    assert as_text == ("\\xe9\\u4e2d\n", "")
    assert json.loads(as_json[0])["content"][0]["text"] == "é中"


def test_a_fault_of_ours_is_a_line_and_no_traceback(run, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr("toolsearch.engine.ToolSearch.search", fail)

    ran = run("search", "x", "--source", "textwrap")

    assert ran.code == 70
    assert ran.err.startswith("error [internal]: KeyError('gone') at ")
    assert ran.err.count("\n") == 1


def test_help_names_the_commands_and_exit_codes_and_loads_nothing_heavy(run_python):
    loaded = run_python(
        "-c",
        "import sys; from toolsearch.cli import main; assert main(['--help']) == 0; print('\\nMODULES', *sys.modules)",
    ).out

    text, _, modules = loaded.partition("\nMODULES ")
    assert all(command in text for command in ("demo", "index", "search", "show", "call", "sources", "tokens"))
    assert "Exit codes" in text
    heavy = {"faiss", "jsonschema", "mcp", "numpy", "re2", "torch"}
    assert heavy.intersection(modules.split()) == set()


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (["--version"], set()),
        (["-q", "tokens", "--help"], {"show"}),
        (["help", "show"], {"show"}),
        (["--help", "show"], {"demo", "show", "gateway", "service"}),
        (["tokns"], {"demo", "show", "gateway", "service"}),
    ],
)
def test_a_command_line_imports_the_command_that_it_names_and_all_where_it_names_none(run_python, arguments, commands):
    program = f"import sys; from toolsearch.cli import main; main({arguments!r}); print('MODULES', *sys.modules)"
    modules = set(run_python("-c", program).out.partition("MODULES ")[2].split())

    asked = {each for each in ("demo", "show", "gateway", "service") if f"toolsearch.cli.{each}" in modules}
    assert asked == commands
    assert arguments != ["--version"] or "rich" not in modules


def test_no_command_is_answered_with_help_and_the_version_is_told(run):
    assert run("--version").out.startswith("toolsearch")
    assert run("--version").code == 0
    bare = run()
    assert (bare.code, bare.err) == (2, "")
    assert "Usage: toolsearch" in bare.out


def test_commands_leave_logging_as_it_was(run):
    before = list(logging.getLogger("toolsearch").handlers)

    run("search", "x", "--source", "textwrap")

    assert logging.getLogger("toolsearch").handlers == before


def test_a_weak_answer_is_marked_and_is_no_failure(indexed):
    weak = indexed("search", "days of the year")
    report = indexed("search", "days of the year", "--json").json

    assert weak.code == 0
    assert all("?" in row for row in weak.out.splitlines()[3:] if "__" in row)
    assert weak.err.startswith("Weak: ")
    assert report["is_weak"]
    assert {result["confidence"] for result in report["results"]} == {"low"}


def test_tools_far_below_the_best_are_listed_if_asked_for(indexed):
    near = indexed("search", "median of numbers", "--limit", "10", "--json").json
    every = indexed("search", "median of numbers", "--limit", "10", "--json", "--all").json

    assert not near["is_weak"]
    assert len(near["results"]) + near["left_out"] == len(every["results"]) == 10
    least = 0.4 * every["results"][0]["score"]
    assert [result["score"] >= least for result in every["results"]] == [True] * len(near["results"]) + [False] * near[
        "left_out"
    ]
    assert all((result["confidence"] != "low") == (result["score"] >= 0.4502) for result in every["results"])
    assert every["left_out"] == 0


def test_each_record_begins_with_the_number_of_its_format(indexed):
    for arguments in (
        ["search", "median"],
        ["show", "forecast"],
        ["call", "statistics__mean", "data=1", "data=2"],
        ["sources"],
        ["tokens"],
        ["index", "textwrap"],
        ["show", "nobody"],
    ):
        ran = indexed(*arguments, "--json")
        record = json.loads(ran.out or ran.err)
        assert next(iter(record)) == "format", arguments
        assert record["format"] == 1


def test_quiet_says_nothing_but_results_and_errors(indexed):
    loud = indexed("search", "median", "--allow", "server:statstics", "--allow", "*")
    for arguments in (["-q", "search"], ["search", "-q"]):
        ran = indexed(*arguments, "median", "--allow", "server:statstics", "--allow", "*")
        assert (ran.out, ran.err) == (loud.out, "")
    assert has_line(loud.err, "warning: ", "--allow server:statstics; did you mean statistics?")
    assert indexed("show", "-q", "nobody").err.startswith("error [unknown_tool]")


def test_verbose_says_what_is_done(indexed):
    assert "debug: searched by" in indexed("-vv", "search", "median").err
    assert "debug: searched by" in indexed("search", "median", "-vv").err
    assert "debug" not in indexed("search", "median", "-v").err
    assert "debug" not in indexed("search", "median").err


def test_the_version_has_a_short_option(run):
    assert run("-V").out == run("--version").out


@pytest.mark.parametrize(
    ("rules", "warning"),
    [
        (["--allow", "server:statstics"], "no tool matches --allow server:statstics; did you mean statistics?"),
        (["--deny", "server:nothing_like_it"], "there are: statistics, textwrap"),
        (["--deny", "tag:x"], "no tool matches --deny tag:x; no tool has a tag"),
        (["--deny", "statistics__mdian"], "--deny name:statistics__mdian; did you mean statistics__median?"),
    ],
)
def test_a_rule_that_matches_no_tool_is_warned_of(indexed, rules, warning):
    assert warning in indexed("search", "median", *rules).err


def test_arguments_are_given_as_pairs(indexed):
    assert indexed("call", "statistics__median", "data=3", "data=1", "data=4").out == "3\n"
    assert indexed("call", "textwrap__shorten", "text=Hello wide world", "width=12").out == "Hello [...]\n"
    wrong = indexed("call", "statistics__median", "dta=3")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("error [bad_arguments]: statistics__median has")
    assert has_line(wrong.err, "'dta'; did you mean data?")


def test_a_prefix_keeps_tools_of_one_name_apart(run, tmp_path):
    (tmp_path / "mine.json").write_text('[{"name": "statistics__mean", "description": "My own."}]')
    clash = run("sources", "statistics", "mine.json", "--json").json
    apart = run("index", "statistics", "mine=mine.json", "my=statistics", "--json").json

    assert "give its source a prefix" in clash["refused"][0]["reason"]
    assert apart["refused"] == []
    assert run("show", "mine__statistics__mean", "--json").json["server"] == "mine"
    assert run("call", "my__statistics__mean", "data=1", "data=3").out == "2\n"
    assert run("search", "/mean/", "--server", "my__statistics").code == 0


def test_a_bad_line_of_a_listing_is_reported_and_costs_no_other(run, tmp_path):
    (tmp_path / "tools.jsonl").write_text('{"name": "one"}\n{oops\n{"name": "two"}\n')

    report = run("sources", "tools.jsonl", "--json").json

    assert report["tools"] == 2
    assert [refusal["name"] for refusal in report["refused"]] == ["line 2"]


@pytest.mark.parametrize("arguments", [["sources", "none.json"], ["index", "none.json", "textwrap"]])
def test_that_a_source_cannot_be_read_is_said_once(run, arguments):
    ran = run(*arguments)

    assert (ran.out + ran.err).replace("cannot be read  ", "").count("cannot be read") == 1


@pytest.mark.usefixtures("processes")
def test_ctrl_c_while_servers_start_says_that_it_was_interrupted(spawn, tmp_path):
    """The server, which never answers, opens a pipe once it runs."""
    os.mkfifo(tmp_path / "started")
    (tmp_path / "hang.py").write_text("import sys\nopen('started', 'w').close()\nsys.stdin.read()\n")
    server = {"command": sys.executable, "args": ["hang.py"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"hanging": server}}))
    process = spawn("sources", "mcp.json")
    (tmp_path / "started").open().close()

    process.send_signal(signal.SIGINT)

    assert process.communicate(timeout=30) == ("", "error [interrupted]: stopped by Ctrl-C\n")
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("toolsearch search x --strategy s", ["semantic"]),
        ("toolsearch show x --format anth", ["anthropic"]),
        ("toolsearch show statistics__median_", ["statistics__median_grouped", "statistics__median_high"]),
        ("toolsearch search x --server t", ["textwrap"]),
        ("toolsearch search x --allow server:st", ["server:statistics"]),
        ("toolsearch call textwrap__shorten wid", ["width="]),
        ("toolsearch search x --source lis", ["listing.json"]),
        ("toolsearch index lis", ["listing.json"]),
    ],
)
def test_a_shell_completes_what_is_known(indexed, spawn, monkeypatch, words, offered):
    monkeypatch.setenv("_TOOLSEARCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    out, err = spawn().communicate()

    assert err == ""
    assert out.splitlines()[: len(offered)] == offered


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "statistics"],
        ["search", "median"],
        ["show", "statistics__mean"],
        ["call", "statistics__mean", "data=1"],
        ["sources"],
        ["tokens"],
    ],
)
def test_the_page_names_the_keys_of_each_record(indexed, arguments):
    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{arguments[0]}` |")]

    told = set(row.replace("`", "").partition("| ")[2].partition("| ")[2].replace(";", ",").split())
    record = indexed(*arguments, "--json").json

    assert set(record) - {"format"} <= {each.strip(",") for each in told}
