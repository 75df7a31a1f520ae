"""HTTP to a real server on this machine, where a stranger has named the address."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from toolsearch.access.url_guard import GuardedTransport, UrlGuard

ELSEWHERE = "http://169.254.169.254/latest/meta-data/"


class _Pages(BaseHTTPRequestHandler):
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.asked.append((self.headers["host"], self.path))
        self.send_response(302 if self.path.startswith("/to/") else 200)
        if self.path.startswith("/to/"):
            self.send_header("location", self.path.removeprefix("/to/"))
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    _Pages.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


class Names:
    """A name server that gives one answer after the other, and the last one from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def client(names: Names, *networks: str, hosts: tuple[str, ...] = ()) -> httpx2.AsyncClient:
    allowed = UrlGuard.of(hosts, networks)
    guard = UrlGuard(allowed.hosts, allowed.networks, names)
    return httpx2.AsyncClient(transport=GuardedTransport(guard), trust_env=False, follow_redirects=True)


async def test_a_host_within_cannot_be_reached(server: ThreadingHTTPServer) -> None:
    async with client(Names(["127.0.0.1"])) as http:
        for host in ("127.0.0.1", "localhost", "inside.example", "[::ffff:127.0.0.1]"):
            with pytest.raises(httpx2.ConnectError, match="this service may not reach its host"):
                await http.get(f"http://{host}:{server.server_port}/")

    assert _Pages.asked == []


async def test_the_server_sees_the_name_and_the_name_is_looked_up_once(server: ThreadingHTTPServer) -> None:
    """Looked up a second time, it would stand for another address."""
    names = Names(["127.0.0.1"], ["10.255.255.1"])
    async with client(names, "127.0.0.0/8") as http:
        answer = await http.get(f"http://inside.example:{server.server_port}/a?b")

    assert answer.text == "ok"
    assert _Pages.asked == [(f"inside.example:{server.server_port}", "/a?b")]
    assert names.asked == ["inside.example"]


async def test_a_name_that_stands_for_another_address_later_is_checked_again(server: ThreadingHTTPServer) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    url = f"http://inside.example:{server.server_port}/"
    async with client(names, "127.0.0.0/8") as http:
        await http.get(url, headers={"connection": "close"})
        with pytest.raises(httpx2.ConnectError, match="this service may not reach its host"):
            await http.get(url)


async def test_the_next_address_is_tried_where_the_first_does_not_answer(server: ThreadingHTTPServer) -> None:
    async with client(Names(["127.0.0.77", "127.0.0.1"]), "127.0.0.0/8") as http:
        assert (await http.get(f"http://inside.example:{server.server_port}/")).text == "ok"


@pytest.mark.parametrize(
    "target",
    [
        ELSEWHERE,
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://0x7f.1/",
        "ftp://127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1:22/",
    ],
)
async def test_a_redirect_goes_only_where_a_request_may(server: ThreadingHTTPServer, target: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "inside.example" else [host]

    guard = UrlGuard(frozenset({"inside.example"}), (), resolve)
    async with httpx2.AsyncClient(transport=GuardedTransport(guard), follow_redirects=True, trust_env=False) as http:
        with pytest.raises(httpx2.TransportError):
            await http.get(f"http://inside.example:{server.server_port}/to/{target}")

    assert [path for _, path in _Pages.asked] == [f"/to/{target}"]
