"""What all tests share: folders of their own, a fresh interpreter, and the option by which no skip hides a failure."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pytest

from tests.kit.clock import Clock

# What reasons for skipping may name: data that not everybody has beside the checkout, and extras of much to download.
_MAY_BE_ABSENT = ("../shared", "the semantic extra", "'.[bench]'")


_runs = count()


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a test approves, caches or stores stays its own, and out of the user's folders."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state{next(_runs)}"))


# A job that a shell starts in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Run code in a fresh interpreter that imports what this one does, and return what it prints."""

    def run(code: str) -> str:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-unexpected-skips",
        action="store_true",
        help=f"fail if a test is skipped for another reason than that {' or '.join(_MAY_BE_ABSENT)} is absent",
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--no-unexpected-skips"):
        return  # a worker of pytest-xdist has no reporter; its skips are reported by the process that started it
    skipped: list[pytest.TestReport] = reporter.stats.get("skipped", [])
    unexpected = [r for r in skipped if not any(absent in _skip_reason(r) for absent in _MAY_BE_ABSENT)]
    for report in unexpected:
        reporter.write_line(f"\nunexpected skip: {report.nodeid}: {_skip_reason(report)}", red=True)
    if unexpected and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skip_reason(report: pytest.TestReport) -> str:
    """Return the reason out of pytest's (file, line, reason)."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
