"""How a client finds the background process: whom it takes for it, and when it gives up."""

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.kit.commands import is_running
from tests.kit.waiting import until
from toolsearch.gateway.daemon import connector as connectors
from toolsearch.gateway.daemon.address import DaemonAddress, NoDaemonError
from toolsearch.gateway.daemon.connector import DaemonConnector
from toolsearch.wire.relayed import line_of

pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"git": {"command": "git", "cwd": "/"}}}))
    return path


class HandMade:
    """A background process that is a thread: it says a banner to each client, the last one again and again."""

    def __init__(self, address: DaemonAddress, *banners: Mapping[str, object]) -> None:
        self._banners = [*banners]
        self._listening = address.listen()
        self.met = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.met += 1
            with connection:
                banner = self._banners.pop(0) if len(self._banners) > 1 else self._banners[0]
                if banner:
                    connection.sendall(line_of(banner))

    def end(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def address(config: Path) -> Iterator[DaemonAddress]:
    address = DaemonAddress.of(config, os.environ)
    lock = address.lock()
    assert lock is not None
    yield address
    os.close(lock)


def test_a_process_of_another_configuration_and_one_that_ends_are_not_taken_for_it(
    config: Path, address: DaemonAddress
) -> None:
    right = {"identity": address.identity, "pid": 1, "log": "log"}
    process = HandMade(address, {}, {"identity": address.identity[::-1]}, right)
    connection = DaemonConnector(config, "warning").connect()
    connection.close()
    process.end()

    assert (process.met, connection.banner) == (3, right)


def test_why_a_process_could_not_start_is_told(config: Path, address: DaemonAddress) -> None:
    process = HandMade(address, {"failed": "the file is broken"})
    with pytest.raises(NoDaemonError, match="the file is broken"):
        DaemonConnector(config, "warning").connect()
    process.end()


def test_who_gives_up_waits_for_no_process(config: Path, address: DaemonAddress) -> None:
    process = HandMade(address, {})
    with pytest.raises(NoDaemonError, match="did not start"):
        DaemonConnector(config, "warning").connect(lambda: process.met == 2)
    process.end()

    assert process.met == 2


def test_a_program_that_does_not_start_is_tried_three_times(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    monkeypatch.setattr(connectors, "_START", f"open({str(started)!r}, 'a').write('x')")
    with pytest.raises(NoDaemonError, match="did not start"):
        DaemonConnector(config, "warning").connect()

    assert started.read_text() == "xxx"
    assert not DaemonAddress.of(config, os.environ).path.with_suffix(".lock").exists()


def test_the_process_leaves_the_session_of_its_client_and_imports_nothing_of_the_working_folder(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for module in ("asyncio", "mcp", "toolsearch"):
        (folder / f"{module}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write('x')")
    monkeypatch.chdir(folder)
    connection = DaemonConnector(config, "warning").connect()
    pid = int(str(connection.banner["pid"]))
    sessions = os.getsid(pid), os.getsid(0)
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    connection.send(line_of({"do": "stop"}))
    until(lambda: not is_running(pid))
    connection.close()

    assert sessions[0] != sessions[1]
    assert parent != os.getpid()
    assert not (tmp_path / "imported").exists()
