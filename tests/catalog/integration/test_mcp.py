"""Live stdio servers as a source of tools: good ones, bad ones, and what happens when one dies."""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.commands import is_running
from tests.kit.tools import call, text_of
from toolsearch import PassThrough, SessionOptions, ToolSearch
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.errors import MissingExtraError, ServerUnavailableError, ToolExecutionError, ToolTimeoutError
from toolsearch.tools.definition import NO_PARAMETERS, Refusal, ToolDefinition
from toolsearch.tools.results import ToolOutput

RAW_SERVER = str(Path(__file__).parents[2] / "mcp_servers" / "raw_server.py")
OpenSource = Callable[..., McpSource]


def raw(behaviour: str = "", **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [RAW_SERVER, behaviour], **more}


@pytest.fixture
def open_source() -> Iterator[OpenSource]:
    sources: list[McpSource] = []

    def opened(servers: dict[str, object], **options) -> McpSource:
        source = McpSource({"mcpServers": servers}, **options)
        sources.append(source)
        return source

    yield opened
    for source in sources:
        source.close()


def test_tools_are_named_after_their_server_and_described_as_listed(open_source):
    report = open_source({"my server": raw()}).load()

    assert report.refused == ()
    assert report.tools[0].definition == ToolDefinition(
        name="my_server__echo",
        description="The echo tool.",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
        annotations={"readOnlyHint": True},
        server="my server",
    )
    assert report.tools[0].definition.local_name == "echo"
    assert report.tools[0].source == "mcpServers#my server"


@pytest.mark.parametrize("behaviour", ["instructions", "description"])
def test_a_server_says_in_its_own_words_what_it_is_for(open_source, behaviour):
    with Catalog() as catalog:
        catalog.load(open_source({"raw": raw(behaviour)}))
        assert catalog.server_purpose("raw") == "Echoes [1m texts."


async def test_a_result_comes_back_whole_even_with_blocks_of_unknown_kinds(open_source):
    report = open_source({"s": raw()}).load()

    assert await call(report, "s__echo", text="hi") == ToolOutput(
        content=({"type": "text", "text": "hi"}, {"type": "hologram", "depth": 3}), structured={"length": 1}
    )
    assert (await call(report, "s__fail")).is_error


def test_tools_can_be_called_from_any_number_of_event_loops(open_source):
    report = open_source({"s": raw()}).load()

    assert [asyncio.run(text_of(report, "s__echo", text=word)) for word in ("a", "b")] == ["a", "b"]


def test_malformed_tools_cost_only_themselves(open_source):
    report = open_source({"s": raw("bad-tools")}).load()

    schemas = {tool.name: tool.definition.input_schema for tool in report.tools}
    assert schemas == {
        "s__good": {"type": "object"},
        "s__bare": NO_PARAMETERS,
        "s__empty_schema": NO_PARAMETERS,
        "s__no_root_type": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "s__header": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
    }
    sdks_words = "property 'a': x-mcp-header 'two words' is not an RFC 9110 token"
    assert [(refusal.name, refusal.reason) for refusal in report.refused] == [
        ("s__array", "its inputSchema has the type 'array', but arguments are an object"),
        ("s__text", "its inputSchema is not an object"),
        ("s: entry 7", "it has no name"),
        ("s: entry 8", "the entry is not an object"),
        ("s__good", "the server lists 'good' earlier, under the same name"),
        ("s__bad_header", f"it asks for an HTTP header that cannot be sent: {sdks_words}"),
    ]


def test_a_server_that_is_silent_missing_or_dead_costs_only_its_own_tools(open_source):
    dying = "import sys; print('reading config', file=sys.stderr); sys.exit('bad key s3cr3t-key')"
    source = open_source(
        {
            "silent": raw("hang"),
            "missing": {"command": "no-such-command"},
            "dead": {"command": sys.executable, "args": ["-c", dying], "env": {"KEY": "s3cr3t-key"}},
            "astray": {**raw(), "cwd": "/no/such/directory"},
            "good": raw(),
        },
        connect_timeout_s=3.0,
    )

    report = source.load()

    assert {tool.definition.server for tool in report.tools} == {"good"}
    assert report.refused == (
        Refusal(
            "silent", "mcpServers#silent", "MCP server 'silent': it did not answer within 3 s; its last words: asleep"
        ),
        Refusal(
            "missing",
            "mcpServers#missing",
            "MCP server 'missing': the command 'no-such-command' was not found; install it, or give its full path",
        ),
        Refusal(
            "dead",
            "mcpServers#dead",
            "MCP server 'dead': it ended before it answered; its last words: reading config | bad key ***",
        ),
        Refusal(
            "astray",
            "mcpServers#astray",
            "MCP server 'astray': its 'cwd' /no/such/directory cannot be entered: No such file or directory",
        ),
    )
    assert [(server.name, server.state, server.tools) for server in source.servers] == [
        ("silent", "failed", 0),
        ("missing", "failed", 0),
        ("dead", "failed", 0),
        ("astray", "failed", 0),
        ("good", "ready", 9),
    ]


def test_a_model_that_sees_the_list_of_servers_learns_which_cannot_be_reached() -> None:
    servers = {"good": raw(), "stripe": {"command": "no-such-command"}, "unset": {"command": "${NO_SUCH_VARIABLE}"}}
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    with (
        Catalog.from_mcp({"mcpServers": servers}) as catalog,
        ToolSearch(catalog, encoder=None, options=options) as engine,
    ):
        for exposure in ("append", "fixed", "messages", "deferred"):
            (block,) = engine.session(exposure, exposure=exposure).answer({"query": "servers:"}).content
            assert block["text"].endswith("tools are not known yet: stripe (not reachable), unset (not reachable).")


async def test_junk_on_stdout_is_survived_and_stays_off_the_terminal(open_source, capfd):
    report = open_source({"s": raw("junk")}).load()

    assert await text_of(report, "s__echo", text="hi") == "hi"
    assert capfd.readouterr() == ("", "")


def test_a_listing_that_goes_in_circles_is_cut_and_reported(open_source):
    report = open_source({"s": raw("circles")}).load()

    assert [tool.name for tool in report.tools] == ["s__tool0", "s__tool1", "s__tool2"]
    assert [refusal.reason for refusal in report.refused] == [
        "the server lists 'tool0' earlier, under the same name",
        "its list repeats itself at the cursor '1'; the tools before that are used",
    ]


def test_a_listing_without_end_is_cut_at_a_thousand_pages(open_source):
    report = open_source({"s": raw("endless")}).load()

    assert len(report.tools) == 1_000
    assert [refusal.reason for refusal in report.refused] == [
        "its list has over 1000 pages; the tools of the first 1000 are used"
    ]


def test_what_a_configuration_gets_wrong_is_logged_and_listed(open_source, caplog):
    source = open_source({"s": {**raw(), "autoApprove": []}, "t": {"command": "${ABSENT}"}}, environment={})

    report = source.load()

    assert caplog.messages == ["mcpServers: 'autoApprove' of server 's' is ignored: it has no meaning here"]
    assert source.warnings == tuple(caplog.messages)
    assert [refusal.name for refusal in report.refused] == ["t"]
    assert [(server.name, server.state) for server in source.servers] == [("s", "ready"), ("t", "failed")]


async def test_a_child_gets_its_own_variables_and_not_all_of_ours(open_source, monkeypatch):
    monkeypatch.setenv("OUR_SECRET", "x")
    report = open_source({"s": raw(env={"KEY": "${TOKEN}"})}, environment={"TOKEN": "t"}).load()

    environment = json.loads(await text_of(report, "s__env"))

    assert environment["KEY"] == "t"
    assert "OUR_SECRET" not in environment
    assert "PATH" in environment


async def test_cancelling_a_call_cancels_it_on_the_server(open_source):
    report = open_source({"s": raw()}).load()

    pending = asyncio.create_task(call(report, "s__never"))
    await asyncio.sleep(0)  # lets it be sent; the server reads in order
    assert await text_of(report, "s__started") == "1"
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending

    assert await text_of(report, "s__cancelled") == "1"


async def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_works(open_source):
    report = open_source({"s": raw()}, call_timeout_s=1.0).load()

    with pytest.raises(ToolTimeoutError, match=r"MCP server 's': it did not answer within 1 s; the call may have run"):
        await call(report, "s__never")

    assert await text_of(report, "s__cancelled") == "1"


async def test_what_the_protocol_calls_an_error_is_a_failed_call_without_secrets(open_source):
    report = open_source({"s": raw(env={"API_KEY": "s3cr3t-key"})}).load()

    with pytest.raises(ToolExecutionError, match=r"'s' refused the request for 'refuse': key \*\*\* is not accepted"):
        await call(report, "s__refuse")


async def test_a_server_killed_during_a_call_fails_that_call_and_is_back_for_the_next(open_source):
    source = open_source({"victim": raw(), "other": raw()})
    report = source.load()
    pid = int(await text_of(report, "victim__pid"))

    doomed = asyncio.create_task(call(report, "victim__never"))
    await asyncio.sleep(0)
    assert await text_of(report, "victim__started") == "1"
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        ServerUnavailableError, match=r"'victim': the connection was lost during the call, which may have run"
    ):
        await doomed

    assert source.servers[0].state == "down"
    assert await text_of(report, "other__echo", text="unharmed") == "unharmed"
    assert int(await text_of(report, "victim__pid")) != pid
    assert await text_of(report, "victim__started") == "0"  # the lost call was not sent again
    assert source.servers[0].state == "ready"


async def test_many_calls_to_a_dead_server_start_it_once(open_source):
    report = open_source({"s": raw()}).load()
    with pytest.raises(ServerUnavailableError):
        await call(report, "s__crash")

    pids = await asyncio.gather(*(text_of(report, "s__pid") for _ in range(20)))

    assert len(set(pids)) == 1


async def test_a_server_that_cannot_come_back_fails_its_calls_with_the_reason(open_source, tmp_path):
    script = tmp_path / "server.py"
    shutil.copy(RAW_SERVER, script)
    report = open_source({"s": {"command": sys.executable, "args": [str(script)]}}).load()
    script.write_text("raise SystemExit('out of order')")
    with pytest.raises(ServerUnavailableError):
        await call(report, "s__crash")

    with pytest.raises(ServerUnavailableError, match="ended before it answered; its last words: out of order"):
        await call(report, "s__echo", text="hi")


async def test_closing_ends_the_processes_and_later_calls_say_so(open_source):
    source = open_source({"s": raw()})
    report = source.load()
    pid = int(await text_of(report, "s__pid"))

    source.close()
    source.close()

    assert not is_running(pid)
    with pytest.raises(ServerUnavailableError, match="have been disconnected"):
        await call(report, "s__pid")


def test_tools_outlive_a_forgotten_source_and_processes_do_not_outlive_the_tools(open_source):
    report = McpSource({"mcpServers": {"s": raw()}}).load()
    pid = int(asyncio.run(text_of(report, "s__pid")))

    del report

    assert not is_running(pid)


def test_the_end_of_the_interpreter_ends_the_processes(run_python):
    program = (
        "import asyncio, sys\n"
        "from toolsearch.catalog.sources.mcp import McpSource\n"
        f"tools = McpSource({{'mcpServers': {{'s': {raw()!r}}}}}).load().tools\n"
        "pid = next(tool for tool in tools if tool.name == 's__pid')\n"
        "print(asyncio.run(pid.callback.call({}, {})).content[0]['text'])\n"
    )

    done = run_python("-c", program)

    assert done.err == ""
    assert not is_running(int(done.out))


def test_without_the_extra_the_error_says_what_to_install(open_source, monkeypatch):
    source = open_source({"s": raw()})
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(MissingExtraError, match=r"pip install 'toolsearch\[mcp\]'"):
        source.load()
