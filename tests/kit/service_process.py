"""The service as its operators start it: a process of its own, found by what it prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Final

import httpx2

from tests.kit.commands import start_python

PROGRAM: Final = ("-m", "toolsearch", "serve")
QUIET: Final = ("--log-level", "warning")  # for thousands of requests, since nobody reads what is logged as it comes


@dataclass(frozen=True)
class ServiceProcess:
    """*key* is the administrator's, "" after the first start."""

    process: Popen[str]
    url: str
    key: str

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}, timeout=30)


@contextmanager
def service_process(
    data: Path,
    *options: str,
    program: tuple[str, ...] = PROGRAM,
    key: str | None = None,
    **environment: str,
) -> Iterator[ServiceProcess]:
    """Start it on a free port, and kill what is left of it at the end.

    *key* is the administrator's where another process made it, as for the second replica over one database.
    """
    is_first = key is None and not (data / "toolsearch.db").exists()
    arguments = ("--data", str(data), "--bind", "127.0.0.1:0", *options)
    with start_python(*program, *arguments, **environment) as process:
        try:
            url = _told(process, "TOOLSEARCH_URL")
            yield ServiceProcess(process, url, _told(process, "TOOLSEARCH_KEY") if is_first else key or "")
        finally:
            process.kill()


def _told(process: Popen[str], name: str) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line.startswith(f"{name}="), (line, process.stderr.read() if process.stderr and not line else "")
    return line.partition("=")[2]
