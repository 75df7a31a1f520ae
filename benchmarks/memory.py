"""What memory a process takes, as Linux tells it."""

from __future__ import annotations

from pathlib import Path


def resident_kib(pid: int | None = None) -> tuple[int, int]:
    """What a process (this one by default) holds for itself, and what is mapped from files.

    The system takes back what is mapped when it has to.
    """
    lines = Path(f"/proc/{pid or 'self'}/status").read_text("utf-8").splitlines()
    kib = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return int(kib["RssAnon"]), int(kib["RssFile"])
