"""Registers Python tools of the operator in catalogs, as the service starts, and takes out those of earlier starts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from toolsearch.catalog.loading import MODULE_PREFIX
from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.modules import ModuleSource
from toolsearch.catalog.taking import sift
from toolsearch.errors import BadSettingError, RecordConflictError, UnknownRecordError
from toolsearch.service.catalogs import CATALOG
from toolsearch.service.imports.exchange import Exchanger
from toolsearch.service.python_tools import PythonTools
from toolsearch.service.stored_tools import to_row
from toolsearch.storage.records import RecordStore
from toolsearch.tools.definition import legal_name

logger = logging.getLogger(__name__)

REGISTERED: Final = "registered"  # the kind of the records of what was registered at the last start
_DEFAULT_CATALOG: Final = "default"
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Registration:
    """*spec* is ``module:NAME``; its tools are in the catalog as those of a source of that name."""

    catalog: str
    spec: str

    @property
    def id(self) -> str:
        return f"{self.catalog}/{self.spec}"


def read_registration(text: str) -> Registration:
    """Read ``module:NAME`` or ``CATALOG=module:NAME``. Raises BadSettingError."""
    catalog, is_given, spec = text.rpartition("=")
    catalog = catalog if is_given else _DEFAULT_CATALOG
    name = spec.removeprefix(MODULE_PREFIX)
    if not spec.startswith(MODULE_PREFIX) or not all(part.isidentifier() for part in name.split(".")):
        raise BadSettingError(f"tools are registered as module:NAME or CATALOG=module:NAME, not as {text!r}")
    if catalog != legal_name(catalog).lower() or "_" in catalog or not catalog:
        raise BadSettingError(f"{catalog!r} is no name of a catalog: it has a-z, 0-9 and -")
    return Registration(catalog, spec)


@dataclass(frozen=True, slots=True)
class Registrar:
    """*clock* gives seconds since 1970."""

    tools: PythonTools
    records: RecordStore
    exchanger: Exchanger
    clock: Callable[[], float]

    async def register(self, tenant: str, registrations: Sequence[Registration]) -> None:
        """Load the modules, which runs them, and write their tools; catalogs that are not there are made.

        Raises SourceError if a module cannot be imported.
        """
        reports = {each: await asyncio.to_thread(_load, each) for each in dict.fromkeys(registrations)}
        await self._take_out(tenant, {each.id for each in reports})
        for registration, report in reports.items():
            await self._write(tenant, registration, report)

    async def _write(self, tenant: str, registration: Registration, report: LoadReport) -> None:
        spec = registration.spec
        good, refused = sift(report.tools, spec)
        self.tools.add(tenant, spec, good)
        await self._require_catalog(tenant, registration.catalog)
        await self._note(tenant, registration)
        rows = [to_row(tool, source=spec, execution={"kind": "python", "spec": spec}) for tool in good]
        done = await self.exchanger.exchange(tenant, registration.catalog, spec, rows)
        for refusal in (*report.refused, *refused, *done.refused):
            logger.warning("%s: %s is refused: %s", spec, refusal.name, refusal.reason)

    async def _take_out(self, tenant: str, kept: set[str]) -> None:
        """Remove the tools of modules that are not registered any more: nothing could run them."""
        found = await asyncio.to_thread(self.records.page, tenant, REGISTERED, limit=_MOST, at_s=self.clock())
        for record in found:
            if record.id not in kept:
                catalog, _, spec = record.id.partition("/")
                with suppress(UnknownRecordError):  # the catalog has been deleted since
                    await self.exchanger.exchange(tenant, catalog, spec, ())
                await asyncio.to_thread(self.records.delete, tenant, REGISTERED, record.id)

    async def _require_catalog(self, tenant: str, name: str) -> None:
        with suppress(RecordConflictError):  # it is there
            await asyncio.to_thread(
                self.records.put, tenant, CATALOG, name, {"description": ""}, over=0, at_s=self.clock()
            )

    async def _note(self, tenant: str, registration: Registration) -> None:
        await asyncio.to_thread(self.records.put, tenant, REGISTERED, registration.id, {}, over=None, at_s=self.clock())


def _load(registration: Registration) -> LoadReport:
    return ModuleSource(registration.spec.removeprefix(MODULE_PREFIX)).load()
