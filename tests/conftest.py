"""What all tests share: folders of their own, a fresh interpreter, and the option by which no skip hides a failure."""

import gc
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from subprocess import Popen
from types import ModuleType
from typing import Any

import pytest

from tests.kit import bytecode, commands  # noqa: F401  the first is imported for what it does
from tests.kit.clock import Clock
from tests.kit.commands import Ran
from tests.kit.lanes import (  # noqa: F401  hooks of pytest
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_ignore_collect,
    pytest_itemcollected,
    pytest_runtest_call,
    pytest_runtest_protocol,
)
from tests.kit.loopback.server import api  # noqa: F401  a fixture
from tests.kit.postgres import any_postgres, own_postgres, postgres, postgres_servers  # noqa: F401  fixtures

# What reasons for skipping may name: data that not everybody has beside the checkout, extras of much to download, and
# what a system has or has not.
_MAY_BE_ABSENT = ("../shared", "the semantic extra", "'.[bench]'", "Debian's PostgreSQL", "HAProxy")
_EXIT_OF_SKIPS = 6  # none of pytest's own: what is skipped is not mended by a second run of what has failed


_runs = count()


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test approves, caches, stores or configures stays its own, and out of the user's folders.

    Background processes of gateways end once the folder is gone in which they are reached.
    """
    number = next(_runs)
    reached = tmp_path_factory.getbasetemp() / f"run{number}"
    reached.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(reached))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state{number}"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / f"config{number}"))
    yield
    shutil.rmtree(reached, ignore_errors=True)


# Each client reads the authorities that it trusts, which takes 40 ms for 150 of them; no test meets a server of theirs.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "kit" / "authority.pem")

# A job that a shell starts in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes() -> None:
    """Of a test outside the folders of integration tests that starts processes or servers by other ways than these."""


@pytest.fixture
def run_python() -> Callable[..., Ran]:
    return commands.run_python


@pytest.fixture
def start_python() -> Iterator[Callable[..., Popen[str]]]:
    """Start Python; what still runs as the test ends is killed."""
    with ExitStack() as started:

        def start(*arguments: str, **options: Any) -> Popen[str]:
            process = started.enter_context(commands.start_python(*arguments, **options))
            started.callback(process.kill)
            return process

        yield start


@pytest.fixture(scope="session")
def sentence_transformers() -> ModuleType:
    """The library of the semantic extra, which takes seconds to import, as torch does."""
    return pytest.importorskip("sentence_transformers", reason="the semantic extra is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Spare the garbage collector what stays until the end: the SDKs' types, and thousands of collected tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


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
    if unexpected:
        session.exitstatus = _EXIT_OF_SKIPS


def _skip_reason(report: pytest.TestReport) -> str:
    """Return the reason out of pytest's (file, line, reason)."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
