"""Packs the requests that ship: run ``just requests`` after a change of the sources.

The sources are data/requests/*.jsonl, a tool a line: its server, its name without the server's, the hash of the
definition that the requests were written for, the sketch of its description, and the requests. Hash and sketch are made
by ``toolsearch/catalog/request_packs.py``.
"""

from __future__ import annotations

import lzma
from pathlib import Path

from toolsearch.catalog.request_packs import PACKS_FILE

SOURCES = Path(__file__).parent / "data" / "requests"
PACKED = Path(__file__).parents[2] / "toolsearch" / "data" / PACKS_FILE

# Unpacking takes as much memory as the dictionary has. The preset would give it 64 MiB.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2 << 20}]


def source_text() -> str:
    """The text of all sources, one after the other, sorted by name."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.jsonl")))


def main() -> None:
    PACKED.write_bytes(lzma.compress(source_text().encode(), filters=_FILTERS))
    print(f"{PACKED.name}: {PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
