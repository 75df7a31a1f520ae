"""A network between a client and a server on this machine that can be cut, and made silent."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

_HOST: Final = "127.0.0.1"


class TcpProxy:
    """Passes connections to *port* on, from `self.port`. `close` it, or use `proxied`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._passes = threading.Event()
        self._passes.set()
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._lost_words: list[bytes] = []
        self._lost_answers: list[bytes] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self._listen()

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        if (listener := self._listener) is not None:
            self._listener = None
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes up who accepts
            listener.close()
        self._break()

    def silence(self) -> None:
        """Take connections and bytes as ever, and pass nothing on: nobody sees an error."""
        self._passes.clear()

    def mend(self) -> None:
        """Pass on again. What was open while it was silent is broken, as by a router that has forgotten it."""
        if not self._passes.is_set():
            self._break()
            self._passes.set()
        if self._listener is None:
            self._listen()

    def lose_answer_to(self, words: bytes) -> None:
        """Break the next connection whose client sends *words*, once the server has answered them."""
        self._lost_answers.append(words)

    def lose(self, words: bytes) -> None:
        """Break the next connection whose client sends *words*, before the server gets them."""
        self._lost_words.append(words)

    def url(self, url: str) -> str:
        """*url*, by way of this."""
        place = urlsplit(url)
        return place._replace(netloc=f"{place.username}@{_HOST}:{self.port}").geturl()

    def close(self) -> None:
        self._passes.set()
        self.cut()

    def _listen(self) -> None:
        self._listener = socket.create_server((_HOST, self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._passes.wait()
        try:
            server = socket.create_connection((_HOST, self._target))
        except OSError:
            client.close()
            return
        link = _Link(client, server)
        with self._lock:
            self._links.add(link)
        threading.Thread(target=self._pump, args=(link, link.server, link.client), daemon=True).start()
        self._pump(link, link.client, link.server)

    def _pump(self, link: "_Link", source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65_536):
                self._passes.wait()
                if source is link.server and link.loses_answer:
                    break
                if source is link.client:
                    if self._took(self._lost_words, chunk):
                        break
                    link.loses_answer = link.loses_answer or self._took(self._lost_answers, chunk)
                sink.sendall(chunk)
        self._end(link)

    def _took(self, expected: list[bytes], chunk: bytes) -> bool:
        """Whether one of *expected* is in *chunk*; it is not expected any more then."""
        with self._lock:
            found = next((words for words in expected if words in chunk), None)
            if found is not None:
                expected.remove(found)
            return found is not None

    def _break(self) -> None:
        with self._lock:
            links = list(self._links)
        for link in links:
            self._end(link)

    def _end(self, link: "_Link") -> None:
        with self._lock:
            self._links.discard(link)
        for each in (link.client, link.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class _Link:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.loses_answer = False


@contextmanager
def proxied(url: str) -> Iterator[TcpProxy]:
    """A proxy to the server of *url*."""
    port = urlsplit(url).port
    assert port is not None
    proxy = TcpProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
