"""A catalog of 2,000 tools of ten servers: 40 verbs, each for 50 kinds of things. Each tool notes that it was run."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolsearch import Catalog, Tool, ToolContext, ToolDefinition

_VERBS = """
    approve archive assign audit cancel clone compare compress convert copy count create decline delete
    describe download duplicate encrypt export forward freeze import inspect label list lock merge move print publish
    rename repair restore schedule search send sort split translate update""".split()  # noqa: SIM905  40 words
SERVERS: Mapping[str, str] = {
    "billing": "invoice receipt voucher payment refund",
    "crm": "customer lead contact deal campaign",
    "docs": "document paragraph chapter footnote template",
    "fleet": "truck driver route trailer tyre",
    "garden": "orchard hedge seedling greenhouse sprinkler",
    "hr": "employee payslip absence interview contract",
    "media": "photo video podcast playlist subtitle",
    "network": "router firewall certificate domain mailbox",
    "school": "lesson exam pupil timetable homework",
    "warehouse": "pallet shelf parcel barcode forklift",
}  # 10 with 5 each
AWAY = "warehouse"  # the server that goes away


class _Run:
    def __init__(self, name: str, ran: Callable[[str], None]) -> None:
        self._name = name
        self._ran = ran

    async def call(self, arguments: Mapping[str, Any], _context: ToolContext) -> str:
        self._ran(self._name)
        return f"{self._name} has run for {arguments['id']}."


def catalog_of(ran: Callable[[str], None], *, without: str = "") -> Catalog:
    """The tools, which tell *ran* their names when they run; not those of the server *without*."""
    return Catalog(
        Tool(_definition(verb, thing, server), _Run(f"{verb}_{thing}", ran))
        for server, things in SERVERS.items()
        if server != without
        for thing in things.split()
        for verb in _VERBS
    )


def change(catalog: Catalog, name: str) -> None:
    """Let the server of a tool describe it in other words."""
    tool = catalog.get(name)
    description = f"{tool.definition.description} Ask before you use it."
    catalog.replace(replace(tool, definition=replace(tool.definition, description=description)))


def remove_server(catalog: Catalog, server: str) -> None:
    catalog.remove(*(tool.name for tool in catalog.tools() if tool.definition.server == server))


def _definition(verb: str, thing: str, server: str) -> ToolDefinition:
    properties: dict[str, Any] = {
        "id": {"type": "string", "description": f"Which {thing}, as the list of them gives it."},
        "note": {"type": "string", "description": "What to write into its history."},
        "at": {"type": "string", "format": "date-time", "description": "When to do it; now if not given."},
        "dry_run": {"type": "boolean", "description": "Say what would be done, and do nothing."},
    }
    return ToolDefinition(
        f"{verb}_{thing}",
        f"{verb.title()} one {thing} of the {server} system, and say what has become of it.",
        {"type": "object", "properties": properties, "required": ["id"]},
        server=server,
    )
