"""What a toolset is made of: tools of catalogs, each by its name there, and rules that take in more of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.errors import BadSettingError, BadToolError, ContentsStoreError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME, require_legal_name

TOOLSET: Final = "toolset"  # the kind of their records, and of their corpora


@dataclass(frozen=True, slots=True)
class ToolsetMember:
    """One tool of a catalog. What is None is as it is there.

    name  what the toolset shows it by
    tags  on top of those that it has there
    """

    catalog: str
    tool: str
    name: str | None = None
    description: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        return self.name or self.tool

    def shown(self, tool: Tool) -> ToolDefinition:
        """The definition of *tool* as the toolset shows it."""
        given = {"name": self.name, "description": self.description, "title": self.title}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        if self.tags:
            changes["tags"] = tuple(dict.fromkeys((*tool.definition.tags, *self.tags)))
        return replace(tool.definition, **changes) if changes else tool.definition


@dataclass(frozen=True, slots=True)
class ToolsetRule:
    """All tools of a catalog that the rules allow, also those that come later, by their names there."""

    catalog: str
    allow: tuple[str, ...] = EVERY_TOOL
    deny: tuple[str, ...] = ()

    @property
    def reach(self) -> Reach:
        """Raises BadSettingError for a rule that cannot be used."""
        return Reach.parse(self.allow, self.deny)


@dataclass(frozen=True, slots=True)
class ToolsetSpec:
    """One version of a toolset; *number* counts them from 1."""

    description: str = ""
    tools: tuple[ToolsetMember, ...] = ()
    rules: tuple[ToolsetRule, ...] = ()
    number: int = 1

    @property
    def catalogs(self) -> tuple[str, ...]:
        of_tools, of_rules = (each.catalog for each in self.tools), (each.catalog for each in self.rules)
        return tuple(dict.fromkeys((*of_tools, *of_rules)))

    def check(self) -> None:
        """Raises BadSettingError for two tools of one name, or a name or a rule that cannot be used."""
        for rule in self.rules:
            _ = rule.reach
        seen: dict[str, ToolsetMember] = {}
        for member in self.tools:
            name = member.shown_name
            try:
                require_legal_name(name)
            except BadToolError as error:
                raise BadSettingError(str(error)) from error
            if name in (TOOL_NAME, CALL_TOOL):
                raise BadSettingError(f"the name {name!r} is taken by tool search itself; give this tool another")
            if name in seen:
                raise BadSettingError(
                    f"two tools would be shown as {name!r}: {_place(seen[name])} and {_place(member)}; give one "
                    "of them another name"
                )
            seen[name] = member

    def document(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def of(cls, document: JsonObject) -> ToolsetSpec:
        """Raises ContentsStoreError for what is damaged."""
        values: dict[str, Any] = dict(document)
        try:
            return cls(
                values["description"],
                tuple(ToolsetMember(**_tupled(each, ("tags",))) for each in values["tools"]),
                tuple(ToolsetRule(**_tupled(each, ("allow", "deny"))) for each in values["rules"]),
                values["number"],
            )
        except (KeyError, TypeError) as error:
            raise ContentsStoreError("a toolset is damaged; write it again") from error


def overrides_of(member: ToolsetMember) -> JsonObject:
    """What the toolset says of a tool itself; empty if it is shown as it is in its catalog."""
    given = {field.name: getattr(member, field.name) for field in fields(member)[2:]}
    return {name: value for name, value in given.items() if value not in (None, ())}


def _tupled(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return values | {name: tuple(values[name]) for name in names}


def _place(member: ToolsetMember) -> str:
    return f"{member.tool!r} of {member.catalog!r}"
