"""What `toolsearch serve --check` looks at before a start: nothing is changed, and every finding is reported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from toolsearch.access.keys import is_loopback
from toolsearch.errors import BadSettingError, StorageError, ToolSearchError
from toolsearch.service.hosts import named_hosts
from toolsearch.service.secret_keys import checked_seal, refuse_new_start
from toolsearch.service.serving import listening
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.place import StorePlace

Level: TypeAlias = Literal["ok", "warning", "error"]

_LITTLE_SPACE: Final = 1024**3  # bytes; less is a reason to look at the disk soon
_NO_SPACE: Final = 64 * 1024**2
_NOT_THERE: Final = "not there yet; the first start makes it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. *error* is what a start would end with."""

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
) -> list[Finding]:
    """Everything that can be told without starting: the folder, the store, the disk and the address."""
    return [
        Finding("settings", "ok", "can be used"),
        _finding("folder", lambda: _folder(data)),
        *_store(store, environ, data, clock),
        *_disk(data),
        _finding("address", lambda: _address(settings, host, port)),
        *_transport(settings, host),
    ]


def _finding(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, "ok", look())
    except ToolSearchError as error:
        return Finding(subject, "error", str(error), error)


def _folder(data: Path) -> str:
    nearest = _existing(data)
    if not nearest.is_dir():
        raise BadSettingError(f"{nearest} is not a folder; name another one by --data")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StorageError(f"{nearest} cannot be written to by this user")
    return f"{data} can be written to" if nearest == data else f"{data} is {_NOT_THERE}"


def _store(store: StorePlace, environ: Mapping[str, str], data: Path, clock: Callable[[], float]) -> Iterator[Finding]:
    try:
        if store.is_new():
            refuse_new_start(environ, data)
        state = store.look()
    except ToolSearchError as error:
        yield Finding("store", "error", str(error), error)
        return
    yield Finding("store", "ok", state.text)
    for subject, text in state.notes:
        yield Finding(subject, "ok", text)
    for subject, text in state.warnings:
        yield Finding(subject, "warning", text)
    if not state.is_current:
        yield Finding("secret key", "ok", "not looked at, since the store cannot be opened before a start")
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


def _disk(data: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(_existing(data)).free
    told = f"{free / 1024**3:,.1f} GiB are free for {data}"
    if free < _NO_SPACE:
        yield Finding("disk", "error", told, StorageError(told))
    else:
        yield Finding("disk", "warning" if free < _LITTLE_SPACE else "ok", told)


def _address(settings: ServiceSettings, host: str, port: int) -> str:
    named_hosts(settings.serve, host, port)
    listening(host, port).close()
    return f"{host or 'every address'}; every request needs a key"


def _transport(settings: ServiceSettings, host: str) -> Iterator[Finding]:
    """Keys in plain text on a network are no secret."""
    url = settings.serve.public_url or ""
    if not is_loopback(host) and not url.startswith("https://"):
        yield Finding(
            "encryption",
            "warning",
            "other machines reach the service without TLS, which shows them each other's keys: put a proxy with TLS in "
            "front of it, and set serve.public_url to its https URL",
        )
