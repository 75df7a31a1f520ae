"""The claims of a caller's token, and how settings name one: ``${claim:NAME}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CLAIM_BEGINS: Final = "${claim:"
CLAIM: Final = re.compile(r"\$\{claim:([^{}]+)\}")  # its group is the NAME


def claim_of(value: object) -> str | None:
    """The NAME in a *value* that is ``${claim:NAME}`` as a whole; None for anything else."""
    found = CLAIM.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Claims:
    """The content of an accepted JWT: its subject and scopes, its end in seconds since 1970, all its claims, and the
    *token* itself.
    """

    subject: str
    scopes: tuple[str, ...]
    end_s: float
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    token: str = field(default="", repr=False, compare=False)
