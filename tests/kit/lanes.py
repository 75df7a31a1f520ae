"""Two lanes: a fast test is quick and needs this process alone; a slow one starts others, or works for long.

A test is slow by where it stands or by a fixture that it uses, and by nothing else, so that nobody has to remember a
mark. Any other test that starts a process or listens on a socket fails, in whichever lane it is run.

integration/  starts processes and servers, or runs whole commands
properties/   tries out hundreds of cases, or of damaged files
"""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

MARK = "slow"
_FOLDERS = frozenset({"benchmarks", "integration", "properties", "training"})
_STARTING = frozenset({"api", "postgres_servers", "processes", "run_python", "start_python"})
_LOADING = frozenset({"sentence_transformers"})  # seconds of imports

_STARTS = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind", "subprocess.Popen"}
)
_OF_PYTHON = "uname"  # the platform module asks this command for the processor's name, once in a process
_BREACHES: list[str] = []  # of the test that runs
_WATCHED: list[str] = []  # that test, unless it may start what it wants


class NotAloneError(Exception):
    """A fast test started a process or a server."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS and _WATCHED and arguments[:1] != (_OF_PYTHON,):
        _BREACHES.append(event)
        raise NotAloneError(_remedy(event))


sys.addaudithook(_audit)  # stays for the life of the process


def _remedy(event: str) -> str:
    fixtures = ", ".join(sorted(_STARTING))
    return (
        f"a fast test did {event}: a test that starts a process or a server stands in a folder "
        f"'integration' of its package, or uses one of the fixtures {fixtures}"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: starts processes or works for long; set by tests/kit/lanes.py alone")
    settings.register_profile("whole", deadline=None, max_examples=30)
    settings.register_profile("fast", deadline=None, max_examples=20)  # a test that names its own number keeps it
    settings.load_profile("fast" if _is_fast_lane(config) else "whole")


def _is_fast_lane(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == f"not {MARK}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing that the fast lane would leave out."""
    return True if _is_fast_lane(config) and collection_path.name in _FOLDERS else None


def pytest_itemcollected(item: pytest.Item) -> None:
    folders = item.path.relative_to(item.config.rootpath).parts
    if _FOLDERS.intersection(folders) or (_STARTING | _LOADING).intersection(getattr(item, "fixturenames", ())):
        item.add_marker(MARK)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: what workers begin last is short, so that they end together."""
    slow_files = {item.path for item in items if item.get_closest_marker(MARK)}
    items.sort(key=lambda item: item.path not in slow_files)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    if not item.get_closest_marker(MARK):
        _WATCHED.append(item.nodeid)
    try:
        return (yield)
    finally:
        _WATCHED.clear()
        _BREACHES.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    result = yield
    if _BREACHES:  # whoever caught the error has not undone it
        raise NotAloneError(_remedy(_BREACHES[0]))
    return result
