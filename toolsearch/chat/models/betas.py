"""What the header ``anthropic-beta`` names, from all that have something to say there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

BETA = "anthropic-beta"


def betas_in(headers: Mapping[str, object]) -> list[str]:
    """The betas that *headers* name, whatever the case of the header's own name."""
    values = [value for name, value in headers.items() if name.lower() == BETA and isinstance(value, str)]
    return [beta.strip() for value in values for beta in value.split(",") if beta.strip()]


def with_betas(headers: Mapping[str, str], betas: Iterable[str]) -> dict[str, str]:
    """Return *headers* with the betas that they name, and *betas*, each once; without the header if there are none."""
    others = {name: value for name, value in headers.items() if name.lower() != BETA}
    named = dict.fromkeys([*betas_in(headers), *betas])
    return others | ({BETA: ",".join(named)} if named else {})
