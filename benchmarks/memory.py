"""What memory this process takes, as Linux tells it."""

from __future__ import annotations

from pathlib import Path


def resident_kib() -> tuple[int, int]:
    """What the process holds for itself, and what is mapped from files, which the system takes back when it has to."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    kib = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return int(kib["RssAnon"]), int(kib["RssFile"])
