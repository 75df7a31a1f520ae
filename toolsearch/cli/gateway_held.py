"""How commands tell of entries that somebody should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsearch.gateway.trust.verdicts import ReviewItem


def held_json(held: ReviewItem) -> dict[str, Any]:
    findings = [{"rule": each.rule, "place": each.place, "evidence": each.evidence} for each in held.findings]
    return {
        "name": held.name,
        "kind": held.kind.value,
        "why": held.why.value,
        "findings": findings,
        "changes": list(held.changes),
    }


def reasons(held: ReviewItem) -> str:
    """Why an entry has to be reviewed, in a line."""
    findings = [f"{each.rule} in {each.place}: {each.evidence}" for each in held.findings]
    return "; ".join([*findings, *(f"changed: {place}" for place in held.changes)])
