"""Other work on the machine: processes that compute without end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def busy_processes(count: int) -> Generator[None]:
    processes = [multiprocessing.Process(target=_compute, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _compute() -> None:
    while True:
        sum(range(100_000))
