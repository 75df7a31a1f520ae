"""The small program that a client starts, while it waits for the next process: what it holds, refuses and ends."""

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import pytest

from tests.kit.waiting import until
from toolsearch.gateway.daemon.address import MOVED, STOPPED, NoDaemonError
from toolsearch.gateway.daemon.connector import Connection, DaemonConnector
from toolsearch.gateway.daemon.relay import ClientRelay
from toolsearch.gateway.door import Door
from toolsearch.wire.relayed import line_of

_GIVE_UP_S = 10.0
BANNER = line_of({"identity": "i", "pid": 1, "log": "log"})


def line(**message: Any) -> bytes:
    return line_of({"jsonrpc": "2.0", **message})


class HandMade:
    """A background process that is a socket: it answers each request, and notes what it has heard."""

    def __init__(self) -> None:
        here, self._there = socket.socketpair()
        self._there.settimeout(_GIVE_UP_S)
        self._there.sendall(BANNER)
        self.connection = Connection(here)
        self.heard: list[dict[str, Any]] = []
        self.was_left = False  # whether the client has ended the connection

    def end(self) -> None:
        self._there.close()

    def say(self, line: bytes) -> None:
        self._there.sendall(line)

    def serve(self) -> None:
        """Answer until the connection is ended."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._there, self._there.makefile("rb") as lines, suppress(TimeoutError):
            for each in lines:
                self.heard.append(json.loads(each))
                if "id" in self.heard[-1]:
                    self._there.sendall(line(id=self.heard[-1]["id"], result={}))
            self.was_left = True


class Machine:
    """A client, its door, and the connector to processes: what each try to reach one does is in *tries*."""

    def __init__(self) -> None:
        self.first = HandMade()
        self.said: list[dict[str, Any]] = []
        self.tries: list[Callable[[], Connection]] = []
        self.lines: list[bytes] = []  # what the client says before anything else
        self.take: Callable[[bytes], None] = lambda _: None
        self.hears: Callable[[dict[str, Any]], None] = lambda _: None  # what the client does when it hears a message

    def hand_to(self, take: Callable[[bytes], None]) -> list[bytes]:
        self.take = take
        return self.lines

    def say(self, line: bytes) -> None:
        self.said.append(json.loads(line))
        self.hears(self.said[-1])

    def connect(self, _: Callable[[], bool]) -> Connection:
        return self.tries.pop(0)()

    def run(self) -> None:
        ClientRelay(cast("DaemonConnector", self), cast("Door", self), self.first.connection).run()


@pytest.fixture
def machine() -> Iterator[Machine]:
    before = signal.getsignal(signal.SIGTERM)
    machine = Machine()
    yield machine
    machine.first.end()
    signal.signal(signal.SIGTERM, before)


def test_a_client_that_leaves_while_it_waits_for_the_next_process_leaves_that_too(machine: Machine) -> None:
    second = HandMade()
    second.serve()

    def reached() -> Connection:
        machine.take(b"")
        return second.connection

    machine.tries = [reached]
    machine.first.say(MOVED)
    machine.run()

    assert second.was_left


def test_requests_are_held_for_the_next_process_but_those_that_the_client_cancels_meanwhile(machine: Machine) -> None:
    second = HandMade()
    second.serve()

    def reached() -> Connection:
        machine.take(line(id=3, method="tools/call"))
        return second.connection

    def hears(message: dict[str, Any]) -> None:
        if "method" in message:  # the first process has told us to move before
            for id_ in (1, 2):
                machine.take(line(id=id_, method="tools/call"))
            machine.take(line(method="notifications/cancelled", params={"requestId": 1}))
            machine.first.say(line(id=0, result={}))
        if message.get("id") == 3:
            machine.take(b"")

    machine.tries, machine.hears = [reached], hears
    machine.lines = [line(id=0, method="ping")]
    machine.first.say(MOVED + line(method="notifications/message"))
    machine.run()

    assert [each["id"] for each in second.heard if "id" in each] == [2, 3]
    assert [each["id"] for each in machine.said if "id" in each] == [0, 2, 3]


def test_requests_that_are_held_for_a_process_that_does_not_start_are_refused_with_the_reason(machine: Machine) -> None:
    def failed() -> Connection:
        for id_ in (1, "2"):
            machine.take(line(id=id_, method="tools/call"))
        threading.Thread(target=ask_again, daemon=True).start()
        raise NoDaemonError("the file is broken")

    def ask_again() -> None:
        with suppress(AssertionError):  # it is seen below
            until(lambda: len(machine.said) == 2)
        machine.take(line(id=3, method="ping"))

    def failed_again() -> Connection:
        machine.take(line(id=4, method="tools/call"))
        machine.take(b"")
        raise NoDaemonError("nothing can be done")

    machine.tries = [failed, failed_again]
    machine.first.say(MOVED)
    machine.run()

    assert [each["id"] for each in machine.said] == [1, "2", 3, 4]
    assert "the file is broken" in machine.said[0]["error"]["message"]
    assert "nothing can be done" in machine.said[3]["error"]["message"]


def test_a_request_that_a_client_leaves_behind_is_refused_for_it_may_still_read(machine: Machine) -> None:
    def hears(message: dict[str, Any]) -> None:
        if message["id"] == 1:
            machine.take(line(id=2, method="ping"))
            machine.take(b"")

    machine.hears = hears
    machine.lines = [line(id=1, method="ping")]
    machine.first.end()
    machine.run()

    assert ["error" in each for each in machine.said] == [True, True]
    assert [each["id"] for each in machine.said] == [1, 2]


@pytest.mark.parametrize(
    ("was_stopped", "age_s", "order"),
    [(True, 100, ["asks", "reached"]), (False, 0, ["asks", "reached"]), (False, 100, ["reached"])],
    ids=["told to end", "ended at once", "killed"],
)
def test_after_a_process_that_was_told_to_end_or_ended_at_once_the_next_starts_only_when_the_client_asks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, was_stopped: bool, age_s: float, order: list[str]
) -> None:
    happened: list[str] = []
    second = HandMade()
    second.serve()
    wait = ClientRelay._wait_for_a_request

    def asks(relay: ClientRelay) -> None:
        if not relay._is_leaving:
            happened.append("asks")
            machine.take(line(id=1, method="ping"))
        wait(relay)

    def reached() -> Connection:
        happened.append("reached")
        machine.take(b"")
        return second.connection

    monkeypatch.setattr(ClientRelay, "_wait_for_a_request", asks)
    machine.tries = [reached]
    machine.first.connection.since_s -= age_s
    if was_stopped:
        machine.first.say(STOPPED)
    else:
        machine.first.end()
    machine.run()

    assert happened == order
