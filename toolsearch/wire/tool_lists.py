"""What a request of any model API says about its list of tools, beside the definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NAMES = re.compile(r'"name": "([\w-]+)"')


def are_deferred(entries: Iterable[Any]) -> bool:
    """Whether the provider's own tool search is to find some of *entries*."""
    return any('"defer_loading": true' in json.dumps(entry, default=str) for entry in entries)


def names_in(value: Any) -> list[str]:
    """What stands anywhere in *value* as a name, of tools among others, in order."""
    return _NAMES.findall(json.dumps(value, default=str))


def chosen_names(request: Mapping[str, Any]) -> list[str]:
    """The tools that the model is made to call, or to choose from."""
    return names_in(request.get("tool_choice"))


def with_cache_mark(kept: Sequence[Any], entries: Iterable[Any]) -> list[Any]:
    """Return *kept*, where the last one has the last mark of *entries* up to which the provider caches the prompt.

    One of *kept* that has a mark of its own keeps it, and then none is added.
    """
    marks = [entry["cache_control"] for entry in entries if "cache_control" in entry]
    if not kept or not marks or any("cache_control" in entry for entry in kept):
        return list(kept)
    return [*kept[:-1], {**kept[-1], "cache_control": marks[-1]}]
