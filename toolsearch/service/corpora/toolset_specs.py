"""The parts of a toolset: tools by their names in catalogs, rules for more tools, and the names given to these.

Replicas agree on the names: the first one to give a name gives it for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeAlias

from toolsearch.api.catalogs import ToolsetMember, ToolsetRule
from toolsearch.errors import BadSettingError, BadToolError, ConflictError, Kept, StorageError, UnknownRecordError
from toolsearch.storage.records import Record
from toolsearch.storage.replicas import PINS, Change
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, TOOL_NAME, require_legal_name

TOOLSET: Final = "toolset"  # the kind of the records of toolsets, and of their corpora


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
        """Raises BadSettingError for two tools with one name, or an invalid name or rule."""
        for rule in self.rules:
            _ = rule.reach
        seen: dict[str, ToolsetMember] = {}
        for member in self.tools:
            name = member.shown_name
            try:
                require_legal_name(name)
            except BadToolError as error:
                raise BadSettingError(str(error)) from error
            if name in (TOOL_NAME, CALL_TOOL, READ_SKILL):
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
        """Raises StorageError if the document is damaged."""
        values: dict[str, Any] = dict(document)
        try:
            return cls(
                values["description"],
                tuple(ToolsetMember(**_tupled(each, ("tags",))) for each in values["tools"]),
                tuple(ToolsetRule(**_tupled(each, ("allow", "deny"))) for each in values["rules"]),
                values["number"],
            )
        except (KeyError, TypeError) as error:
            raise StorageError("a toolset is damaged; write it again", Kept.CONTENTS) from error


def overrides_of(member: ToolsetMember) -> JsonObject:
    """The toolset's own values for a tool; empty if it is shown as in its catalog."""
    given = {field.name: getattr(member, field.name) for field in fields(member)[2:]}
    return {name: value for name, value in given.items() if value not in (None, ())}


def _tupled(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return values | {name: tuple(values[name]) for name in names}


def _place(member: ToolsetMember) -> str:
    return f"{member.tool!r} of {member.catalog!r}"


NAMES: Final = "toolset_names"  # the kind of the records, one for each toolset, that map names to catalogs
_CATALOG: Final = "catalog"
_SOURCE: Final = "source"
Versions: TypeAlias = Mapping[tuple[str, str], int]  # (kind, id) -> version, for one tenant, as in `Change`


def by_subject(changes: Iterable[Change]) -> Versions:
    return {(change.kind, change.id): change.version for change in changes}


def versions_of_catalog(name: str, there: Versions) -> Versions:
    """The versions of a catalog's parts besides its contents: its sources, and the decisions about their listings."""
    start = f"{name}/"
    return {key: there[key] for key in there if key[0] == PINS or (key[0] == _SOURCE and key[1].startswith(start))}


def versions_of_toolset(spec: ToolsetSpec, name: str, there: Versions) -> Versions:
    """The versions of a toolset's parts. For its catalogs only their existence counts."""
    catalogs = {(_CATALOG, each): 0 for each in spec.catalogs if (_CATALOG, each) in there}
    return {key: there[key] for key in [(TOOLSET, name)] if key in there} | catalogs


Holders: TypeAlias = Mapping[str, str]  # name -> catalog of each tool that a rule has taken in
_ATTEMPTS: Final = 10  # attempts, since other replicas may give names meanwhile


@dataclass(frozen=True, slots=True)
class KeptNames:
    """*number* is the version of the toolset for which the names were given; 0 means none."""

    number: int = 0
    holders: Holders = field(default_factory=dict[str, str])


class ToolsetNames:
    """The record of one toolset's names. *clock* gives seconds since 1970. `version` is the version that was read or
    written last.
    """

    def __init__(self, storage: Storage, tenant: str, toolset: str, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._of = tenant, NAMES, toolset
        self._toolset = tenant, TOOLSET, toolset
        self._clock = clock
        self.version = 0

    def read(self) -> KeptNames:
        return self._read()[0]

    def keep(self, number: int, holders: Holders) -> Holders:
        """Keep *holders* for the version *number* of the toolset. Return the valid ones: holders that others kept first
        win.

        Nothing is kept if the toolset was deleted meanwhile. Raises ConflictError if others keep writing.
        """
        for _ in range(_ATTEMPTS):
            kept, version = self._read()
            agreed = dict(holders)
            if kept.number >= number:
                agreed = {**agreed, **kept.holders} if kept.number == number else dict(kept.holders)
            if kept.number > number or (kept.number == number and agreed == kept.holders):
                return agreed
            try:
                self._write(KeptNames(number, agreed), over=version)
            except ConflictError:
                continue
            except UnknownRecordError:
                pass
            return agreed
        raise ConflictError(NAMES, self._of[2])

    def _read(self) -> tuple[KeptNames, int]:
        record = self._storage.records.get(*self._of, at_s=self._clock())
        self.version = record.version if record else 0
        return _kept(record), self.version

    def _write(self, names: KeptNames, *, over: int) -> None:
        document: dict[str, Any] = {"number": names.number, "holders": dict(names.holders)}
        with self._storage.transaction():
            record = self._storage.records.put(*self._of, document, over=over, at_s=self._clock())
            if self._storage.records.get(*self._toolset, at_s=self._clock()) is None:
                raise UnknownRecordError(*self._toolset[1:])
        self.version = record.version


def _kept(record: Record | None) -> KeptNames:
    if record is None:
        return KeptNames()
    document: Any = record.document
    return KeptNames(document.get("number", 0), dict(document["holders"]))
