"""Times as the API gives them."""

from __future__ import annotations

from datetime import UTC, datetime


def time_of(seconds: float) -> datetime:
    """*seconds* since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
