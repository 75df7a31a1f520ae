"""Is ours ahead of a peer on a catalogue, and if not, why not?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.peers.published import Published
from benchmarks.peers.systems import SYSTEMS

Row = Mapping[str, Any]

QUALITIES = ("recall_5", "ndcg_10")


def ours(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {name: row for name, row in rows.items() if SYSTEMS[name].is_ours and "missing" not in row}


def ahead(row: Row, rows: Mapping[str, Row]) -> list[str]:
    """Those of ours that find more, by recall@5 and nDCG@10, and take less CPU time for a search."""
    return [name for name, mine in ours(rows).items() if _finds_more(mine, row) and mine["query_ms"] < row["query_ms"]]


def verdict(name: str, rows: Mapping[str, Row]) -> str:
    """What the row of a peer says: which of ours are ahead of it, or what it is ahead in, and why."""
    row = rows[name]
    if "missing" in row:
        return str(row["missing"])
    if names := ahead(row, rows):
        return f"ahead: {', '.join(names)}"
    better = {mine: each for mine, each in ours(rows).items() if _finds_more(each, row)}
    if better:
        quickest = min(better, key=lambda mine: better[mine]["query_ms"])
        mine_ms, their_ms = better[quickest]["query_ms"], row["query_ms"]
        lacking = f"faster: {their_ms:.2f} ms against {mine_ms:.2f} of {quickest}, which finds more"
    else:
        lacking = "finds more"
    about = SYSTEMS[name].about
    return f"{lacking}. {about}" if about else lacking


def published_verdict(row: Published, rows: Mapping[str, Row]) -> str:
    names = [
        mine for mine, each in ours(rows).items() if each["recall_5"] > row.recall_5 and each["ndcg_10"] > row.ndcg_10
    ]
    if names:
        return f"ahead: {', '.join(names)}"
    return "finds more, with a model of 8 billion parameters on a GPU" if "8B" in row.name else "finds more"


def _finds_more(mine: Row, theirs: Row) -> bool:
    return all(mine[quality] > theirs[quality] for quality in QUALITIES)
