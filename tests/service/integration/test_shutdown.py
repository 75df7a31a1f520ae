"""A service that is asked to end finishes what it has begun, takes nothing new, and leaves with 0."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.kit.service_process import ServiceProcess, service_process

WAITING = (str(Path(__file__).parents[2] / "kit" / "waiting_service.py"),)


@contextmanager
def waiting(
    folder: Path, *options: str, **environment: str
) -> Iterator[tuple[ServiceProcess, Future[httpx2.Response]]]:
    """A service in which one request waits for the file ``released``, and its answer to come."""
    query = {"begun": str(folder / "begun"), "released": str(folder / "released")}
    with (
        service_process(folder / "data", *options, program=WAITING, **environment) as started,
        started.client() as client,
        ThreadPoolExecutor() as threads,
    ):
        answer = threads.submit(client.get, "/wait", params=query)
        while not (folder / "begun").exists():
            time.sleep(0.01)
        try:
            yield started, answer
        finally:
            (folder / "released").touch()


def refuses(started: ServiceProcess) -> bool:
    """Wait until it takes no connection any more."""
    while True:
        try:
            httpx2.get(f"{started.url}/healthz")
        except httpx2.TransportError:
            return True
        time.sleep(0.01)


def test_a_request_that_runs_is_answered_and_no_new_one_is_taken(tmp_path):
    with waiting(tmp_path) as (started, answer):
        started.process.send_signal(signal.SIGTERM)

        assert refuses(started)
        assert not answer.done()
        (tmp_path / "released").touch()
        assert (answer.result().status_code, answer.result().json()) == (200, "done")
        assert started.process.wait() == 0


def test_a_call_that_runs_is_finished_its_receipt_is_kept_and_no_second_key_is_made(tmp_path):
    options = ("--tools", "module:tests.kit.waiting_tool")
    arguments = {"begun": str(tmp_path / "begun"), "released": str(tmp_path / "end")}
    with (
        service_process(tmp_path / "data", *options) as started,
        started.client() as client,
        ThreadPoolExecutor() as threads,
    ):
        key = started.key
        (tool,) = client.get("/v1/catalogs/default/tools").json()["items"]
        call = {"catalog": "default", "name": tool["name"], "arguments": arguments}
        answer = threads.submit(client.post, "/v1/calls", json=call)
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        started.process.send_signal(signal.SIGTERM)
        assert refuses(started)
        (tmp_path / "end").touch()

        assert answer.result().json()["content"] == [{"type": "text", "text": "done"}]
        out, _ = started.process.communicate()
        assert (started.process.returncode, out) == (0, "")

    with service_process(tmp_path / "data", *options) as again:
        receipts = httpx2.get(f"{again.url}/v1/receipts", headers={"authorization": f"Bearer {key}"}).json()["items"]
        again.process.send_signal(signal.SIGTERM)
        printed, _ = again.process.communicate()
    assert printed == ""
    assert [(each["tool"], each["outcome"]) for each in receipts] == [(tool["name"], "ok")]


def test_a_stream_without_an_end_is_ended_whole(tmp_path):
    with service_process(tmp_path, program=WAITING) as started, started.client() as client:
        with client.stream("GET", "/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "data: begun"
            started.process.send_signal(signal.SIGTERM)
            assert list(lines) == [""]
        assert started.process.wait() == 0


def test_a_request_that_does_not_end_in_time_is_left_behind(tmp_path):
    with waiting(tmp_path, TOOLSEARCH_SERVE__SHUTDOWN_TIMEOUT_S="1") as (started, answer):
        started.process.send_signal(signal.SIGTERM)

        assert started.process.wait() == 0
        assert answer.result().status_code == 500


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path, sent):
    with waiting(tmp_path) as (started, _):
        started.process.send_signal(sent)
        assert refuses(started)
        started.process.send_signal(sent)

        assert started.process.wait() == -sent
