"""Whose activity a caller may look at: everybody's of its tenant if it sees all keys, and its own otherwise."""

from __future__ import annotations

from toolsearch.service.callers import ServiceCaller


def whose_key(caller: ServiceCaller, key: str | None, *, mine: bool) -> str | None:
    """The id of the key whose activity is shown; None for that of all keys.

    Raises NotPermittedError or HttpRefusal for the key of somebody else.
    """
    own = caller.key_id
    if caller.sees_all_keys:
        return own if mine else key
    if key not in (None, own):
        caller.require("admin")
        caller.require_whole_reach()
    return own
