"""The environment variables that are ours: settings, by a prefix, and the one that is none."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "TOOLSEARCH_"
NESTED: Final = "__"  # between a section and a name in it
GATEWAY_TOKEN: Final = "TOOLSEARCH_GATEWAY_TOKEN"  # noqa: S105  the name of the variable
