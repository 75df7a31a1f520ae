"""Python tools and skills of the operator: registered in catalogs, run and read in this process, and taken out once no
replica has them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from toolsearch.catalog.source import LoadReport, sift
from toolsearch.catalog.sources.functions import ModuleSource
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.chores import running
from toolsearch.documents.json_values import as_list
from toolsearch.documents.skills import Skill
from toolsearch.errors import BadSettingError, ConflictError, ToolNotHereError, ToolSearchError, UnknownRecordError
from toolsearch.service.catalogs.catalogs import CATALOG
from toolsearch.service.catalogs.imports.sources import Exchanger
from toolsearch.service.corpora.stored_tools import definition_of, to_row
from toolsearch.service.replicas import ReplicaPresence
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext, legal_name
from toolsearch.tools.json_types import JsonObject


class PythonTools:
    """Registered functions and skills by tenant and spec, so that no row of another tenant can run them."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str, str], Tool] = {}

    def add(self, tenant: str, spec: str, tools: Sequence[Tool]) -> None:
        self._tools |= {(tenant, spec, tool.name): tool for tool in tools}

    def callback(self, tenant: str, row: StoredTool, execution: JsonObject) -> ToolCallback:
        """The callback of the tool of *row*. It looks up the function at each call, since it may be registered
        later.
        """
        return _Registered(self, tenant, str(execution.get("spec")), row)

    def find(self, tenant: str, spec: str, row: StoredTool) -> ToolCallback | None:
        """The function of *row*; None if this process has none, or if its arguments or its result differ.

        A replica with another version may have written the row, and arguments are checked against the row.
        """
        tool = self._tools.get((tenant, spec, row.name))
        if tool is None:
            return None
        ours, stored = tool.definition, definition_of(row)
        is_same = (ours.input_schema, ours.output_schema) == (stored.input_schema, stored.output_schema)
        return tool.callback if is_same else None


@dataclass(frozen=True, slots=True)
class _Registered:
    tools: PythonTools
    tenant: str
    spec: str
    row: StoredTool

    @property
    def skill(self) -> Skill | None:
        """The manifest, if it is a skill."""
        return getattr(self.tools.find(self.tenant, self.spec, self.row), "skill", None)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        callback = self.tools.find(self.tenant, self.spec, self.row)
        if callback is None:
            raise ToolNotHereError(self.row.name)
        return await run_callback(callback, arguments, context)


logger = logging.getLogger(__name__)
REGISTERED: Final = "registered"  # the kind of the records of which replica has registered what
_DEFAULT_CATALOG: Final = "default"
_MOST: Final = 1_000
_LOOK_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Registration:
    """*spec* is ``module:NAME`` or ``skills:FOLDER``. What it has is in the catalog under a source of that name."""

    catalog: str
    spec: str

    @property
    def id(self) -> str:
        return f"{self.catalog}/{self.spec}"


def read_registration(text: str) -> Registration:
    """Read ``module:NAME`` or ``skills:FOLDER``, with ``CATALOG=`` in front or without. Raises BadSettingError."""
    catalog, is_given, spec = text.rpartition("=")
    catalog = catalog if is_given else _DEFAULT_CATALOG
    kind, _, name = spec.partition(":")
    is_module = kind == "module" and all(part.isidentifier() for part in name.split("."))
    if not is_module and not (kind == "skills" and name):
        raise BadSettingError(
            f"tools are registered as module:NAME and skills as skills:FOLDER, either with CATALOG= in front or "
            f"without, not as {text!r}"
        )
    if catalog != legal_name(catalog).lower() or "_" in catalog or not catalog:
        raise BadSettingError(f"{catalog!r} is no name of a catalog: it has a-z, 0-9 and -")
    return Registration(catalog, spec)


class _StillRegisteredError(Exception):
    """Another replica has registered it by now."""


class Registrar:
    """*clock* gives seconds since 1970."""

    def __init__(
        self,
        tools: PythonTools,
        storage: Storage,
        exchanger: Exchanger,
        presence: ReplicaPresence,
        clock: Callable[[], float],
    ) -> None:
        self._tools = tools
        self._storage = storage
        self._exchanger = exchanger
        self._presence = presence
        self._clock = clock
        # Id of a registration -> the registration and its tools.
        self._registered: dict[str, tuple[Registration, list[StoredTool]]] = {}

    async def register(self, tenant: str, registrations: Sequence[Registration]) -> None:
        """Load the modules, which runs them, and the skills, and write all. Missing catalogs are made.

        Raises SourceError if a module cannot be imported, or a folder has no skill.
        """
        reports = {each: await asyncio.to_thread(load, each) for each in dict.fromkeys(registrations)}
        for registration, report in reports.items():
            self._add(tenant, registration, report)
        for registration_id in await self._abandoned(tenant):
            await self._take_out(tenant, registration_id)
        for registration, rows in self._registered.values():
            await self._write(tenant, registration, rows)

    @asynccontextmanager
    async def following(self, tenant: str) -> AsyncGenerator[None]:
        """While the block runs, look once a minute at the registrations of other replicas."""
        async with running(self._keep_following(tenant)):
            yield

    async def look(self, tenant: str, abandoned_before: Collection[str]) -> set[str]:
        """Remove registrations that were abandoned at the last look and still are. Return those that are abandoned now.

        This replica's registrations are written again if others have removed them by mistake.
        """
        abandoned = await self._abandoned(tenant)
        for registration_id in abandoned & set(abandoned_before):
            await self._take_out(tenant, registration_id)
        for registration, rows in self._registered.values():
            if self._presence.replica not in await asyncio.to_thread(self._replicas_with, tenant, registration.id):
                await self._write(tenant, registration, rows)
        return abandoned

    async def _keep_following(self, tenant: str) -> None:
        abandoned = set[str]()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                abandoned = await self.look(tenant, abandoned)
            except ToolSearchError as error:
                logger.warning("the registered Python tools cannot be read: %s", error)

    def _add(self, tenant: str, registration: Registration, report: LoadReport) -> None:
        spec = registration.spec
        good, refused = sift(report.tools, spec)
        self._tools.add(tenant, spec, good)
        for refusal in (*report.refused, *refused):
            logger.warning("%s: %s is refused: %s", spec, refusal.name, refusal.reason)
        rows = [to_row(tool, source=spec, execution={"kind": "python", "spec": spec}) for tool in good]
        self._registered[registration.id] = registration, rows

    async def _write(self, tenant: str, registration: Registration, rows: Sequence[StoredTool]) -> None:
        spec = registration.spec
        await self._require_catalog(tenant, registration.catalog)
        await asyncio.to_thread(self._note, tenant, registration.id)
        done = await self._exchanger.exchange(tenant, registration.catalog, spec, rows)
        for refusal in done.refused:
            logger.warning("%s: %s is refused: %s", spec, refusal.name, refusal.reason)

    async def _abandoned(self, tenant: str) -> set[str]:
        """The ids of registrations that no running replica has, so that nothing could run their tools."""
        return await asyncio.to_thread(self._find_abandoned, tenant)

    def _find_abandoned(self, tenant: str) -> set[str]:
        found = self._storage.records.page(tenant, REGISTERED, limit=_MOST, at_s=self._clock())
        return {each.id for each in found if each.id not in self._registered and not self._running(each)}

    async def _take_out(self, tenant: str, registration_id: str) -> None:
        """Remove its tools, unless a replica registers it at this moment."""
        catalog, _, spec = registration_id.partition("/")

        def forget() -> None:
            with self._storage.transaction():
                there = self._storage.records.hold(tenant, REGISTERED, registration_id, at_s=self._clock())
                if there is not None and self._running(there):
                    raise _StillRegisteredError
                self._storage.records.delete(tenant, REGISTERED, registration_id)

        with suppress(_StillRegisteredError):
            try:
                await self._exchanger.exchange(tenant, catalog, spec, (), also=lambda _: forget())
            except UnknownRecordError:  # the catalog was deleted since
                await asyncio.to_thread(forget)

    async def _require_catalog(self, tenant: str, name: str) -> None:
        with suppress(ConflictError):  # the catalog exists already
            await asyncio.to_thread(
                self._storage.records.put, tenant, CATALOG, name, {"description": ""}, over=0, at_s=self._clock()
            )

    def _note(self, tenant: str, registration_id: str) -> None:
        """Record that this replica has the registration, and forget replicas that have ended."""
        with self._storage.transaction():
            there = self._storage.records.hold(tenant, REGISTERED, registration_id, at_s=self._clock())
            running = {*(self._running(there) if there else ()), self._presence.replica}
            document: JsonObject = {"replicas": sorted(running)}
            self._storage.records.put(tenant, REGISTERED, registration_id, document, over=None, at_s=self._clock())

    def _replicas_with(self, tenant: str, registration_id: str) -> list[str]:
        there = self._storage.records.get(tenant, REGISTERED, registration_id, at_s=self._clock())
        return _replicas(there) if there else []

    def _running(self, record: Record) -> list[str]:
        """The replicas that have it registered and run."""
        return [replica for replica in _replicas(record) if self._presence.is_there(replica)]


def _replicas(record: Record) -> list[str]:
    return list(map(str, as_list(record.document.get("replicas")) or ()))


def load(registration: Registration) -> LoadReport:
    """Import the module, which runs it, or read the skills. Raises SourceError."""
    kind, _, name = registration.spec.partition(":")
    return SkillsSource(name).load() if kind == "skills" else ModuleSource(name).load()
