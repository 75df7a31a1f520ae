"""Serves the application until a signal ends it; and the checks of ``toolsearch serve --check`` before a start."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Literal, TypeAlias

import uvicorn
from starlette.types import ASGIApp

from toolsearch.access.addresses import is_loopback
from toolsearch.errors import BadSettingError, StorageError, ToolSearchError
from toolsearch.gateway.http import listening, server_config
from toolsearch.service.sealing import checked_seal, refuse_new_start
from toolsearch.service.settings import ServeSettings, ServiceSettings
from toolsearch.service.web.middleware import Shutdown
from toolsearch.service.web.paths import named_hosts
from toolsearch.storage.place import StorePlace


async def serve(
    app: ASGIApp,
    settings: ServeSettings,
    *,
    listener: socket.socket,
    shutdown: Shutdown,
    on_started: Callable[[], None],
) -> None:
    """Serve *app* at *listener*; *on_started* is called once requests are accepted.

    On SIGTERM or SIGINT no new request is accepted. Running requests have ``settings.shutdown_timeout_s`` to end, and
    then the lifespan of *app* ends. A second signal ends the process at once.
    """
    config = server_config(app, timeout_graceful_shutdown=settings.shutdown_timeout_s, lifespan="on")
    await _Server(config, shutdown, on_started).serve([listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, shutdown: Shutdown, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._shutdown = shutdown
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._shutdown.begin()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True


Level: TypeAlias = Literal["ok", "warning", "error"]
_LITTLE_SPACE: Final = 1024**3  # bytes; with less free space the disk should be looked at soon
_NO_SPACE: Final = 64 * 1024**2
_NOT_THERE: Final = "not there yet; the first start makes it"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. *error* is the error with which a start would end."""

    subject: str
    level: Level
    text: str
    error: ToolSearchError | None = None


def check_up(
    settings: ServiceSettings,
    environ: Mapping[str, str],
    data: Path,
    store: StorePlace,
    host: str,
    port: int,
    *,
    clock: Callable[[], float],
) -> list[CheckResult]:
    """All checks that need no start: the folder, the store, the disk and the address."""
    return [
        CheckResult("settings", "ok", "can be used"),
        _finding("folder", lambda: _folder(data)),
        *_store(store, environ, data, clock),
        *_disk(data),
        _finding("address", lambda: _address(settings, host, port)),
        *_transport(settings, host),
    ]


def _finding(subject: str, look: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(subject, "ok", look())
    except ToolSearchError as error:
        return CheckResult(subject, "error", str(error), error)


def _folder(data: Path) -> str:
    nearest = _existing(data)
    if not nearest.is_dir():
        raise BadSettingError(f"{nearest} is not a folder; name another one by --data")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StorageError(f"this user cannot write to {nearest}; change its owner, or name another folder by --data")
    return f"{data} can be written to" if nearest == data else f"{data} is {_NOT_THERE}"


def _store(
    store: StorePlace, environ: Mapping[str, str], data: Path, clock: Callable[[], float]
) -> Iterator[CheckResult]:
    try:
        if store.is_new():
            refuse_new_start(environ, data)
        state = store.look()
    except ToolSearchError as error:
        yield CheckResult("store", "error", str(error), error)
        return
    yield CheckResult("store", "ok", state.text)
    for subject, text in state.notes:
        yield CheckResult(subject, "ok", text)
    for subject, text in state.warnings:
        yield CheckResult(subject, "warning", text)
    if not state.is_current:
        yield CheckResult("secret key", "ok", "not looked at, since the store cannot be opened before a start")
    else:
        yield _finding("secret key", lambda: _secret_key(store, environ, data, clock))


def _secret_key(store: StorePlace, environ: Mapping[str, str], data: Path, clock: Callable[[], float]) -> str:
    with closing(store.open()) as storage:
        seal = checked_seal(environ, data, storage.records, clock=clock)
    if seal is not None:
        return "opens what it has sealed"
    return f"{_NOT_THERE}, and every service that shares the store needs the same" if store.is_shared else _NOT_THERE


def _existing(path: Path) -> Path:
    """*path*, or the nearest folder above it that is there."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _disk(data: Path) -> Iterator[CheckResult]:
    free = shutil.disk_usage(_existing(data)).free
    told = f"{free / 1024**3:,.1f} GiB are free for {data}"
    if free < _NO_SPACE:
        yield CheckResult("disk", "error", told, StorageError(told))
    else:
        yield CheckResult("disk", "warning" if free < _LITTLE_SPACE else "ok", told)


def _address(settings: ServiceSettings, host: str, port: int) -> str:
    named_hosts(settings.serve, host, port)
    listening(host, port).close()
    return f"{host or 'every address'}; every request needs a key"


def _transport(settings: ServiceSettings, host: str) -> Iterator[CheckResult]:
    """Keys in plain text on a network are no secret."""
    url = settings.serve.public_url or ""
    if not is_loopback(host) and not url.startswith("https://"):
        yield CheckResult(
            "encryption",
            "warning",
            "other machines reach the service without TLS, and can read each other's keys: put a proxy with TLS in "
            "front of it, and set serve.public_url to its https URL",
        )
