"""Claims of a caller's token in settings, written ``${claim:NAME}``."""

from __future__ import annotations

import re
from typing import Final

CLAIM_BEGINS: Final = "${claim:"
CLAIM: Final = re.compile(r"\$\{claim:([^{}]+)\}")  # its group is the NAME


def claim_of(value: object) -> str | None:
    """The NAME in a *value* that is ``${claim:NAME}`` as a whole; None for anything else."""
    found = CLAIM.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None
