"""A toolset as a form has it: rows of fields, which are read back when the form is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from toolsearch.api.toolsets import NewToolset
from toolsearch.service.pages.filters import Exact
from toolsearch.service.pages.routing import Sent
from toolsearch.service.toolset_specs import ToolsetSpec

MOST_TOOLS: Final = 400  # that have rows in one form
_SPARE_ROWS: Final = 2


@dataclass(frozen=True, slots=True)
class ToolRow:
    catalog: str = ""
    tool: str = ""
    name: str = ""
    title: str = ""
    description: str = ""
    tags: str = ""  # separated by commas

    def body(self) -> dict[str, Any]:
        own = {"name": self.name, "title": self.title, "description": self.description}
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        given = {key: value for key, value in own.items() if value.strip()}
        return {"catalog": self.catalog, "tool": self.tool.strip(), **given, "tags": tags}


@dataclass(frozen=True, slots=True)
class RuleRow:
    catalog: str = ""
    allow: str = ""  # separated by white space, as *deny*
    deny: str = ""

    def body(self) -> dict[str, Any]:
        return {"catalog": self.catalog, "allow": self.allow.split(), "deny": self.deny.split()}


@dataclass(frozen=True, slots=True)
class Draft:
    """*over* is the version of the record that it was made from; 0: it is a new toolset."""

    name: str = ""
    description: str = ""
    tools: tuple[ToolRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    over: int = 0

    @classmethod
    def of(cls, name: str, spec: ToolsetSpec, over: int) -> Draft:
        tools = (
            ToolRow(
                each.catalog,
                each.tool,
                each.name or "",
                each.title or "",
                each.description or "",
                ", ".join(each.tags),
            )
            for each in spec.tools
        )
        rules = (RuleRow(each.catalog, " ".join(each.allow), " ".join(each.deny)) for each in spec.rules)
        return cls(name, spec.description, tuple(tools), tuple(rules), over)

    @classmethod
    def sent(cls, form: Sent, name: str = "") -> Draft:
        """Rows without a tool, or without an allowed name, are left out; so are those that are marked to be."""
        tools = [
            ToolRow(*(form.exact(f"tool.{row}.{each.name}") for each in fields(ToolRow)))
            for row in range(_count(form, "tools"))
            if form.text(f"tool.{row}.tool") and not form.text(f"tool.{row}.out")
        ]
        added = [str(each).partition("/") for each in form.form.getlist("add")]
        rules = [
            RuleRow(*(form.exact(f"rule.{row}.{each.name}") for each in fields(RuleRow)))
            for row in range(_count(form, "rules"))
            if form.text(f"rule.{row}.allow")
        ]
        return cls(
            name or form.text("name"),
            form.exact("description"),
            (*tools, *(ToolRow(catalog, tool) for catalog, _, tool in added)),
            tuple(rules),
            _count(form, "over"),
        )

    def body(self) -> NewToolset:
        """Raises ValidationError."""
        return NewToolset.model_validate(
            {
                "name": self.name,
                "description": self.description,
                "tools": [row.body() for row in self.tools],
                "rules": [row.body() for row in self.rules],
            }
        )

    @property
    def exact(self) -> Draft:
        """The same for the fields of a form."""
        return replace(
            self,
            name=Exact(self.name),
            description=Exact(self.description),
            tools=tuple(ToolRow(*_exact(row)) for row in self.tools),
            rules=tuple(RuleRow(*_exact(row)) for row in self.rules),
        )

    def with_spare_rows(self) -> Draft:
        return replace(
            self,
            tools=(*self.tools, *[ToolRow()] * _SPARE_ROWS),
            rules=(*self.rules, RuleRow()),
        )


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Tools of a catalog that may be added, for which somebody has looked."""

    catalog: str = ""
    text: str = ""
    names: Sequence[str] = field(default_factory=tuple[str, ...])


def documents(spec: ToolsetSpec) -> dict[str, Any]:
    """*spec* with its tools by the names that they are shown by, so that a tool stays at its place when others go."""
    tools = {
        each.shown_name: {
            "from": f"{each.catalog}/{each.tool}",
            **{key: value for key in ("title", "description") if (value := getattr(each, key)) is not None},
            **({"tags": ", ".join(each.tags)} if each.tags else {}),
        }
        for each in spec.tools
    }
    rules = _by_catalog((each.catalog, f"allow {' '.join(each.allow)}", each.deny) for each in spec.rules)
    made_of = {"description": spec.description, "tools": tools, "rules": rules}
    return {name: part for name, part in made_of.items() if part}


def _by_catalog(rules: Iterable[tuple[str, str, Sequence[str]]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for catalog, allow, deny in rules:
        rule = f"{allow}, deny {' '.join(deny)}" if deny else allow
        found[catalog] = f"{found[catalog]}\n{rule}" if catalog in found else rule
    return found


def _count(form: Sent, name: str) -> int:
    text = form.text(name)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _exact(row: ToolRow | RuleRow) -> list[Exact]:
    return [Exact(getattr(row, each.name)) for each in fields(row)]
