"""Runs pytest, and once more, alone, what failed. What then passes is a flake, which tests/flakes.toml must name.

    python .ci/suite.py CACHE TODAY [options of pytest]

CACHE is a folder for pytest's cache, TODAY a date such as 2026-11-24. Of thousands of tests, many with real processes,
one may lose a race against a busy machine; what is broken fails again. More than three failures are no flakes.

Ends with pytest's status, and with 7 for a flake that the file does not name with this date and a cause.
"""

import datetime
import json
import subprocess
import sys
import tomllib
from pathlib import Path

FLAKES = Path("tests/flakes.toml")
SOME_FAILED = 1  # pytest's status if tests failed and nothing worse happened
UNNAMED_FLAKE = 7  # a status that neither pytest nor tests/conftest.py has
MOST_RUN_AGAIN = 3


def main(cache: str, today: str, *options: str) -> int:
    in_cache = ("-o", f"cache_dir={cache}")
    status = pytest(*in_cache, *options)
    if status != SOME_FAILED:
        return status
    failed = sorted(json.loads(Path(cache, "v/cache/lastfailed").read_text("utf-8")))
    if len(failed) > MOST_RUN_AGAIN:
        return status
    print("FAILED ONCE, and run once more, alone:", *failed, sep="\n", flush=True)
    again = pytest(*in_cache, "--last-failed", "--last-failed-no-failures", "none", "-n", "0")
    if again:
        return again
    unnamed = unnamed_flakes(failed, datetime.date.fromisoformat(today))
    for name in unnamed:
        print(f"{name} passed alone. Look for the cause, and write what is missing of this into {FLAKES}:")
        print(f"[[flake]]\ntest = {json.dumps(name)}\ndates = [{today}]\ncause = ", flush=True)
    return UNNAMED_FLAKE if unnamed else 0


def pytest(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def unnamed_flakes(failed: list[str], today: datetime.date) -> list[str]:
    """Those of *failed* that the file does not name with the date and a cause, or that were thought to be mended."""
    flakes = tomllib.loads(FLAKES.read_text("utf-8")).get("flake", [])
    named = {each["test"] for each in flakes if today in each["dates"] and each["cause"] and not each.get("mended")}
    return [name for name in failed if name not in named]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
