"""What the rules find in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the scan has against a definition.

    rule      a stable name, such as ``hidden-characters``
    place     where in the entry: ``description``, ``inputSchema.properties.path.description``
    evidence  the words, short and printable; nothing that could steer a terminal or a model
    """

    rule: str
    place: str
    evidence: str
