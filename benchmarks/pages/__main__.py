"""Renew what the pages tell of the stored figures: tables, figures in sentences, and plots.

    python -m benchmarks.pages [--check]

Exit codes: 1 if *--check* finds a file that differs, 2 if a page lacks what it should have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages.renewing import renewed_files
from benchmarks.results import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        files = renewed_files(options.root)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(options.root)} {'differs' if options.check else 'is renewed'}")
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return int(options.check and bool(stale))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and say what differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    return parser


if __name__ == "__main__":
    sys.exit(main())
