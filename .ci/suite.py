"""Runs pytest, and once more, alone, what failed. What then passes is a flake, which is written into tests/flakes.toml.

    python .ci/suite.py CACHE TODAY [options of pytest]

CACHE is a folder for pytest's cache, TODAY a date such as 2026-11-24. Of thousands of tests, many with real processes,
one may lose a race against a busy machine; what is broken fails again. More than three failures are no flakes.

Ends with pytest's status, and with 7 for a flake that the file says is mended.
"""

import datetime
import json
import subprocess
import sys
import tomllib
from pathlib import Path

FLAKES = Path("tests/flakes.toml")
SOME_FAILED = 1  # pytest's status if tests failed and nothing worse happened
NOT_MENDED = 7  # a status that neither pytest nor tests/conftest.py has
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
    return write_down(failed, today)


def pytest(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def write_down(names: list[str], today: str) -> int:
    """Put *today* into the entry of each flake, a new one where there is none. Return the status to end with."""
    status = 0
    for name in names:
        text = FLAKES.read_text("utf-8")
        known = {each["test"]: each for each in tomllib.loads(text).get("flake", [])}.get(name)
        if known is None:
            text += f'\n[[flake]]\ntest = {json.dumps(name)}\ndates = [{today}]\ncause = "not known yet"\n'
        elif known.get("mended"):
            status = NOT_MENDED
        if known is not None and datetime.date.fromisoformat(today) not in known["dates"]:
            before, entry, behind = text.partition(f"test = {json.dumps(name)}\n")
            text = before + entry + behind.replace("]", f", {today}]", 1)
        FLAKES.write_text(text, "utf-8")
        print(f"{name} passed alone. It is in {FLAKES} now: look for the cause, and write it there.", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
