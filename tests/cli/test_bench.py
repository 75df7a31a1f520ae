"""``toolsearch bench``: what it prints and writes, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.clock import Clock
from tests.kit.commands import Ran
from toolsearch.bench.prices import prices_of
from toolsearch.cli.options import endpoint_of, prices_for, progress_on_stderr
from toolsearch.cli.output import be_quiet
from toolsearch.errors import BadSettingError

THINGS = ["invoice", "ticket", "calendar event", "branch", "customer", "report"]
LISTING = [
    {
        "name": f"{verb}_{thing.replace(' ', '_')}",
        "description": f"{verb.capitalize()} a {thing} of this project.",
        "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }
    for verb in ("create", "archive")
    for thing in THINGS
]


def chat_call(number: str, name: str) -> dict[str, object]:
    function = {"name": name, "arguments": '{"id": "7"}'}
    return {"role": "assistant", "tool_calls": [{"id": number, "type": "function", "function": function}]}


LOG = [
    {"role": "user", "content": "Put ticket 7 away."},
    chat_call("1", "archive_ticket"),
    {"role": "tool", "tool_call_id": "1", "content": "It is archived."},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Tell Ann."},
    chat_call("2", "tell[bold]"),
    {"role": "tool", "tool_call_id": "2", "content": "sent"},
    {"role": "assistant", "content": "I have told her."},
]


@pytest.fixture
def run(command, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """Run ``bench`` in a directory where log.json holds LOG, and tools.json twelve tools."""
    monkeypatch.chdir(tmp_path)
    Path("tools.json").write_text(json.dumps(LISTING))
    Path("log.json").write_text(json.dumps(LOG))
    return lambda *arguments: command("bench", *arguments)


def test_without_a_terminal_progress_is_a_line_now_and_then(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_on_stderr(clock) as progress:
        for done in range(5):
            progress("Conversations", done, 5)
            clock.now_s += 4

    assert capsys.readouterr().err == "Conversations: 3 of 5\n"


def test_quiet_leaves_out_the_lines_of_progress(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    be_quiet()
    with progress_on_stderr(clock) as progress:
        clock.now_s = 11
        progress("Conversations", 1, 5)
    be_quiet(wanted=False)

    assert capsys.readouterr().err == ""


@pytest.fixture
def savings(run) -> Callable[..., Ran]:
    """Over few made-up conversations, so that it is quick."""

    def savings(*arguments: str) -> Ran:
        made_up = () if "--conversations" in arguments else ("--count", "2", "--preset", "question")
        return run("savings", "tools.json", *made_up, "--strategy", "keyword", *arguments)

    return savings


def test_the_report_has_the_ways_the_break_even_the_verdict_and_what_was_counted(savings):
    ran = savings("--no-growth")
    lines = ran.out.splitlines()

    assert ran.code == 0
    assert lines[0].startswith("12 tools, ")
    assert lines[0].endswith(", claude-sonnet-5-5")
    assert [row.split()[0] for row in lines if row.startswith(("  every", "  found", "  messages", "  fixed"))] == [
        *("every", "found", "messages", "fixed"),
    ]
    assert "From where on " in ran.out
    assert "tool search" in ran.out
    assert "2 made-up conversations of the preset 'question', seed 0." in lines
    assert "What is not counted" in lines
    assert "as of 2026-" in ran.out


def test_each_form_is_written_beside_the_tables_or_printed_alone(savings):
    beside = savings("--json-to", "report.json", "--markdown", "report.md", "--html", "report.html")
    alone = savings("--json")
    marked = savings("--markdown", "-", "--html", "again.html")

    assert beside.out.startswith("12 tools, ")
    assert json.loads(Path("report.json").read_text()) == alone.json
    assert Path("report.md").read_text() == marked.out
    assert Path("report.html").read_text() == Path("again.html").read_text()
    assert [size["tools"] for size in alone.json["sizes"]] == [10, 12]


def test_tools_are_searched_however_few_there_are(savings):
    """An engine with its defaults would show ten tools whole."""
    fewest = savings("--json").json["sizes"][0]

    assert fewest["tools"] == 10
    assert [way["by_cache"]["none"]["search_rounds"] > 0 for way in fewest["ways"]] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]


def test_searches_are_made_as_the_settings_say(savings):
    """One tool in each answer is fewer tokens than five."""
    Path("few.toml").write_text("[toolsearch.search]\nlimit = 1\n")
    usual, few = (savings("--no-growth", *more, "--json").json for more in ((), ("--settings", "few.toml")))
    tokens = [each["sizes"][0]["ways"][-1]["by_cache"]["none"]["prompt"] for each in (usual, few)]

    assert tokens[1] < tokens[0]


def test_an_own_log_is_played_and_tools_that_the_catalog_lacks_fail(savings):
    """One of two turns fails, since there is no tool to tell with."""
    report = savings("--conversations", "log.json", "--format", "openai", "--json").json

    assert (report["conversations"], report["turns"]) == (1, 2)
    assert report["endpoint"] == {"format": "openai", "model": "gpt-5.1", "cloud": ""}
    assert [way["by_cache"]["cold"]["failed"] for way in report["sizes"][-1]["ways"]] == [1, 1, 1, 1, 1]
    assert report["notes"][0] == "1 conversations out of log.json."
    assert report["notes"][-1].startswith("1 calls are of tools")
    assert report["notes"][-1].endswith(": tell[bold].")
    assert "tell[bold]" in savings("--conversations", "log.json", "--no-growth").out


def test_an_index_is_taken_where_no_source_is_given(run, command, savings):
    assert command("index", "tools.json", "--strategy", "keyword").code == 0

    from_index = run("savings", "--count", "2", "--preset", "question", "--strategy", "keyword", "--json")

    assert from_index.json == savings("--json").json


def test_own_prices_are_what_is_paid(savings):
    """Twice the price of everything is twice the money."""
    once, twice = (
        savings("--no-growth", "--prices", f"input={n},output={2 * n},cache_read={n},cache_write={n}", "--json").json
        for n in (1, 2)
    )
    cold = [[way["by_cache"]["cold"]["dollars"] for way in each["sizes"][0]["ways"]] for each in (once, twice)]

    assert cold[1] == pytest.approx([2 * dollars for dollars in cold[0]])
    assert once["prices"]["source"] == "--prices"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--format", "mcp"], 2, "error [bad_setting]: --format must be one of anthropic, openai-responses, openai"),
        (["--model", "nobody-1"], 2, "error [bad_setting]: no price is known for the model 'nobody-1'; give --prices"),
        (["--model", "nobody-1", "--prices", "input=1"], 2, "error [bad_setting]: --prices must have output for"),
        (["--prices", "input"], 2, "error [bad_setting]: --prices: input must be a number of dollars, not ''"),
        (["--prices", "reading=1"], 2, "error [bad_setting]: --prices takes input, output, cache_read, cache_write"),
        (["--prices", "input=-1"], 2, "error [bad_setting]: input must be a number of at least 0"),
        (["--preset", "none"], 2, "error [bad_setting]: --preset must be one of question, assistant, agent, long"),
        (["--json", "--markdown", "-"], 2, '{"format": 1, "error": {"code": "bad_setting", "message": "--json'),
        (["--conversations", "log.json", "--count", "2"], 2, "error [bad_setting]: --preset and --count are for"),
        (["--conversations", "nowhere.json"], 3, "error [file_error]: 'nowhere.json' cannot be read"),
        (
            ["--conversations", "bad.json"],
            2,
            "error [bad_query]: bad.json holds no conversation that",
        ),
        (["--index", "x"], 2, "error [bad_setting]: give either sources or --index, not both"),
    ],
)
def test_what_cannot_be_counted_is_one_line_on_stderr(run, arguments, code, message):
    Path("bad.json").write_text("nonsense\n")

    ran = run("savings", "tools.json", *arguments)

    assert ran.code == code
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_source_that_cannot_be_read_is_an_error(run):
    assert run("savings", "no_such_module_here").code == 3
    assert run("speed", "no_such_module_here").code == 3


@pytest.mark.parametrize(
    ("wire_format", "model", "expected"),
    [
        (None, None, ("anthropic", "claude-sonnet-5-5")),
        (None, "claude-opus-5-5", ("anthropic", "claude-opus-5-5")),
        (None, "gpt-5.6", ("openai-responses", "gpt-5.6")),
        ("openai", None, ("openai", "gpt-5.1")),
        ("openai-responses", None, ("openai-responses", "gpt-6.2-sol")),
    ],
)
def test_the_model_says_the_format_and_the_format_the_model(wire_format, model, expected):
    endpoint = endpoint_of(wire_format, model)

    assert (endpoint.wire_format, endpoint.model) == expected
    assert prices_for(endpoint, None) == prices_of(endpoint.model)


def test_a_price_of_ones_own_leaves_the_others_of_the_table():
    endpoint = endpoint_of("openai", "gpt-5.1")
    known, mixed = prices_of("gpt-5.1"), prices_for(endpoint, "output=1")

    assert (mixed.input, mixed.output, mixed.cache_read) == (known.input, 1, known.cache_read)
    assert mixed.source.startswith("--prices; ")
    assert mixed.source.endswith(known.source)


def test_a_model_that_the_table_does_not_know_takes_the_given_prices_and_reads_its_cache_for_the_same():
    prices = prices_for(endpoint_of("openai", "own-model"), "input=1,output=2")

    assert (prices.input, prices.output, prices.cache_read, prices.cache_write) == (1, 2, 1, 1)
    assert (prices.source, prices.looked_up, prices.long_prompts) == ("--prices", "", None)
    with pytest.raises(BadSettingError, match="each once"):
        prices_for(endpoint_of("openai", "own-model"), "input=1,input=2")


def test_quality_is_what_evaluate_measures(run, command):
    arguments = ("--propose", "5", "--source", "tools.json", "--strategy", "keyword", "--json")

    assert run("quality", *arguments) == command("evaluate", *arguments)


def test_speed_tells_the_time_of_each_strategy_and_the_memory_of_the_index(run):
    shown = run("speed", "tools.json", "--strategy", "keyword", "--searches", "3")
    told = run("speed", "tools.json", "--strategy", "keyword", "--searches", "3", "--json").json

    assert [row.split()[:2] for row in shown.out.splitlines() if row.startswith(("  keyword", "  regex"))] == [
        ["keyword", "3"],
        ["regex", "3"],
    ]
    assert "index of 12 tools" in shown.out
    assert (told["tools"], [row["strategy"] for row in told["strategies"]]) == (12, ["keyword", "regex"])
    assert told["index_bytes"] > 1_000
