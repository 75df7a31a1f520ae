"""A tool as clients are shown it, be its definition short or long."""

from __future__ import annotations

from dataclasses import replace

from toolsearch.discovery.shown import ShownDefinitions
from toolsearch.tools.definition import Tool
from toolsearch.wire.mcp.definitions import entry_of
from toolsearch.wire.mcp.eras import entry_for

wire_entry, raw_entry = entry_for, entry_of


def within_bound(tool: Tool, definitions: ShownDefinitions, max_tokens: int | None) -> Tool | None:
    """*tool* as clients are shown it, whose definition takes at most *max_tokens*; None if it cannot be made so short.

    Fields that no version knows are left out where the entry is too long with them.
    """
    shown = definitions.of(tool.definition, max_tokens).definition
    if shown is None:
        return None
    if shown is tool.definition and definitions.fits(entry_of(tool), max_tokens):
        return tool
    return replace(tool, definition=shown, origin=None)
