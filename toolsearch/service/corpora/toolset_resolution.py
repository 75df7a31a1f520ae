"""Which tool each name of a toolset means, now that its catalogs are as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.service.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec
from toolsearch.tools.definition import Tool

Absence: TypeAlias = Literal["missing", "refused"]


@dataclass(frozen=True, slots=True)
class Absent:
    """A tool that the toolset asks for and does not have."""

    name: str
    catalog: str
    tool: str
    state: Absence
    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """*members* are by the names that they are shown by; *holders* gives, by name, the catalog of each tool that a rule
    has taken in. A tool that has left its catalog keeps its name until there is another version of the toolset: a name
    never comes to mean another tool by itself.
    """

    members: Mapping[str, ToolsetMember] = field(default_factory=dict[str, ToolsetMember])
    absent: tuple[Absent, ...] = ()
    holders: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def holders_in_use(self) -> dict[str, str]:
        """What another version of the toolset begins with: only names that are in use are kept for who has them."""
        return {name: held for name, held in self.holders.items() if name in self.members}


class CatalogTools(Protocol):
    """The tools of one catalog, as a `Catalog` has them."""

    def __contains__(self, name: object) -> bool: ...
    def names(self) -> list[str]: ...
    def find(self, name: str) -> Tool | None: ...


def resolve(spec: ToolsetSpec, catalogs: Mapping[str, CatalogTools], holders: Mapping[str, str]) -> Resolution:
    """*catalogs* lacks those that are not there. *holders* are those of the last time: whoever had a name keeps it."""
    members: dict[str, ToolsetMember] = {}
    absent: list[Absent] = []
    for member in spec.tools:
        if member.tool in catalogs.get(member.catalog, ()):
            members[member.shown_name] = member
        else:
            reason = _missing(member, is_catalog_there=member.catalog in catalogs)
            absent.append(Absent(member.shown_name, member.catalog, member.tool, "missing", reason))
    asked = {member.shown_name: member for member in spec.tools}
    named = {(member.catalog, member.tool) for member in spec.tools}
    ruled = {rule.catalog for rule in spec.rules}
    held = {name: catalog for name, catalog in holders.items() if catalog in ruled and name not in asked}
    for name, wanting in _candidates(spec.rules, catalogs, named).items():
        explicit = asked.get(name)
        holder = explicit.catalog if explicit else held.setdefault(name, wanting[0])
        if explicit is None and holder in wanting:
            members[name] = ToolsetMember(holder, name)
        for catalog in wanting:
            if explicit is not None or catalog != holder:
                whose = f"{explicit.tool if explicit else name!r} of the catalog {holder!r}"
                reason = f"the name {name!r} belongs to {whose}; give one of them another name among the tools"
                absent.append(Absent(name, catalog, name, "refused", reason))
    return Resolution(members, tuple(absent), held)


def _candidates(
    rules: Iterable[ToolsetRule], catalogs: Mapping[str, CatalogTools], named: set[tuple[str, str]]
) -> dict[str, list[str]]:
    """By name, the catalogs that a rule would take a tool of that name from, in the order of the rules."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        catalog = catalogs.get(rule.catalog)
        if catalog is None:
            continue
        allows = _allowing(rule.reach, catalog)
        for name in sorted(catalog.names()):
            wanting = found.get(name, ())
            if rule.catalog not in wanting and (rule.catalog, name) not in named and allows(name):
                found.setdefault(name, []).append(rule.catalog)
    return found


def _allowing(reach: Reach, catalog: CatalogTools) -> Callable[[str], bool]:
    """Whether a tool is within *reach*; its definition is read only if that makes a difference."""
    if reach.is_everything:
        return lambda _: True

    def allows(name: str) -> bool:
        tool = catalog.find(name)
        return tool is not None and reach.allows(tool.definition)

    return allows


def _missing(member: ToolsetMember, *, is_catalog_there: bool) -> str:
    if not is_catalog_there:
        return f"there is no catalog {member.catalog!r}"
    return f"the catalog {member.catalog!r} has no tool {member.tool!r} at the moment"
