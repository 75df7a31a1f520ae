"""Servers that go on when their stdin ends, and a parent that is killed: nothing of them stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Writes a line into the pipe at argv[1] as soon as nothing but SIGKILL can end it, and holds the pipe open until then.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as pipe:
    if "child" not in sys.argv:
        subprocess.Popen([sys.executable, *sys.orig_argv[1:], "child"])
    print("here", file=pipe, flush=True)
    while True:
        time.sleep(60)
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def wait_for_the_end_of(pipe: Path, kill: subprocess.Popen[str]) -> None:
    """Kill a parent once the server and the child of the server are there; returns when both have ended."""
    with pipe.open() as reading:
        assert reading.readline() + reading.readline() == "here\nhere\n"
        kill.kill()
        kill.wait()
        assert reading.read() == ""


def test_after_a_kill_of_the_gateway_no_server_stays_that_ignores_the_end_of_its_input(pipe, tmp_path, start_python):
    config = tmp_path / "mcp.json"
    stubborn = {"command": sys.executable, "args": ["-c", STUBBORN, str(pipe)]}
    config.write_text(json.dumps({"mcpServers": {"stubborn": stubborn}}))

    wait_for_the_end_of(pipe, start_python("-m", "toolsearch", "gateway", "--no-daemon", "--config", str(config)))


def test_after_a_kill_of_a_program_that_uses_the_library_no_server_stays_either(pipe, start_python):
    entry = {"command": sys.executable, "args": ["-c", STUBBORN, str(pipe)]}
    program = f"""
from toolsearch.catalog.sources.mcp import McpSource
McpSource({{"mcpServers": {{"s": {entry!r}}}}}).load()
"""
    wait_for_the_end_of(pipe, start_python("-c", program))


def test_only_groups_that_are_still_there_are_ended(pipe):
    """The number of one that has ended may be that of another by then."""
    spared = subprocess.Popen(["sleep", "60"], start_new_session=True)
    program = f"""
import subprocess, sys, time
from toolsearch.upstreams.stdio import guard
stubborn = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}, {str(pipe)!r}], start_new_session=True)
guard.add({spared.pid})
guard.add(stubborn.pid)
guard.discard({spared.pid})
time.sleep(60)
"""
    with spared, subprocess.Popen([sys.executable, "-c", program]) as parent:
        wait_for_the_end_of(pipe, parent)
        assert spared.poll() is None
        spared.kill()
