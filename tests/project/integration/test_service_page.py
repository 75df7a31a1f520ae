"""The newcomer's page of the service runs as it stands: its blocks of shell, one after the other in one shell.

A block ``text`` says what the block before it prints; ``...`` stands for anything. The port is a free one, and what is
installed is already here.
"""

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "service.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SCRIPTS = [text for language, text in BLOCKS if language == "sh"]
SAID = [
    (SCRIPTS.index(text), says)
    for (language, text), (following, says) in pairwise(BLOCKS)
    if (language, following) == ("sh", "text")
]
_END = "~~~ end of block ~~~"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[str]:
    """What each block prints."""
    folder = tmp_path_factory.mktemp("newcomer")
    command = folder / "bin" / "toolsearch"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m toolsearch "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    script = f"echo; echo '{_END}'\n".join(SCRIPTS).replace("127.0.0.1:8080", "127.0.0.1:0")
    script = re.sub(r"^pip install .*$", "", script, flags=re.MULTILINE)
    environment = os.environ | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    log = folder / "service.log"
    assert done.returncode == 0, (done.stdout, done.stderr, log.read_text() if log.exists() else "")
    return done.stdout.split(_END)


def test_every_block_of_the_page_runs(printed):
    assert len(printed) == len(SCRIPTS)


@pytest.mark.parametrize(("block", "says"), SAID, ids=range(len(SAID)))
def test_a_block_prints_what_the_page_says(printed, block, says):
    pattern = ".*".join(re.escape(part) for part in says.strip().split("..."))

    assert re.search(pattern, printed[block], re.DOTALL), printed[block]
