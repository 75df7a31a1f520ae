"""One tool of one server: by both its names, and whole as the server lists it."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.safety import SafetyClass, worst_safety_of
from toolsearch.upstreams.pinned import Kind, pin_of


@dataclass(frozen=True, slots=True)
class GatewayTool:
    """What is listed under *definition.name* here and under *remote_name* by *server*.

    raw  the entry as it came: fields that no version of the protocol knows are clients' to read, and are hashed too
    """

    server: str
    remote_name: str
    definition: ToolDefinition
    raw: JsonObject

    @property
    def kind(self) -> Kind:
        return Kind.TOOL

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def worst_safety(self) -> SafetyClass:
        """What a client has to be ready for; rules go by `safety_of`, which believes a tool that says nothing."""
        return worst_safety_of(self.definition.annotations)

    def pin(self) -> str:
        """SHA-256 (hex) over the server's name and the whole entry; key order and white space do not count."""
        return pin_of([self.server, self.raw])
