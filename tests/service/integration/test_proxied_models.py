"""Requests to models through a service that listens, in front of a model API that answers bit by bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from tests.kit.proxied import RawApi, raw_api
from tests.kit.service_process import QUIET, ServiceProcess, service_process

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ONE, TWO, END = b"9\r\ndata: 1\n\n\r\n", b"9\r\ndata: 2\n\n\r\n", b"0\r\n\r\n"
BODY = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
AT_ONCE = 30


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder: Path = tmp_path_factory.mktemp("service")
    networks = '["127.0.0.0/8"]'
    with service_process(folder / "data", *QUIET, TOOLSEARCH_OUTBOUND__ALLOWED_NETWORKS=networks) as service:
        yield service


def name_provider(started: ServiceProcess, api: RawApi) -> None:
    with started.client() as client:
        body = {"api": "anthropic", "base_url": api.url, "key": "sk"}
        client.post("/v1/providers", json=body).raise_for_status()


def test_a_stream_comes_piece_by_piece(started: ServiceProcess) -> None:
    go_on = threading.Event()
    with raw_api([HEAD, ONE, go_on, TWO + END]) as api, started.client() as client:
        name_provider(started, api)
        with client.stream("POST", "/v1/messages", json=BODY) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            go_on.set()
            assert (first, b"".join(pieces)) == (b"data: 1\n\n", b"data: 2\n\n")


def test_the_provider_is_left_as_soon_as_the_client_leaves(started: ServiceProcess) -> None:
    with raw_api([HEAD, ONE, threading.Event()]) as api, started.client() as client:
        name_provider(started, api)
        with client.stream("POST", "/v1/messages", json=BODY) as answer:
            assert next(answer.iter_raw()) == b"data: 1\n\n"
        assert api.hung_up.wait(10)


async def test_many_streams_run_at_once(started: ServiceProcess) -> None:
    waiting = threading.Event()
    answers = [[HEAD, ONE, waiting, END]] * AT_ONCE
    with raw_api(*answers) as api:
        name_provider(started, api)
        async with AsyncExitStack() as stack:
            key = {"authorization": f"Bearer {started.key}"}
            client = await stack.enter_async_context(httpx2.AsyncClient(base_url=started.url, headers=key, timeout=60))
            streams = [
                (await stack.enter_async_context(client.stream("POST", "/v1/messages", json=BODY))).aiter_raw()
                for _ in range(AT_ONCE)
            ]
            assert [await anext(each) for each in streams] == [b"data: 1\n\n"] * AT_ONCE
            waiting.set()
