"""The sources of catalogs as records of the store, and the replacement of a source's tools.

Possible secrets are sealed, and never shown again. The tools of other sources are left alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final

from toolsearch.api.imports import SourceKind
from toolsearch.errors import ConflictError, DuplicateToolError, Kept, UnknownRecordError
from toolsearch.service.catalogs.writing import owning_server
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.storage.contents import CatalogContents, StoredTool
from toolsearch.storage.records import Record, RecordStore
from toolsearch.storage.seal import Seal
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread
from toolsearch.tools.definition import Refusal
from toolsearch.tools.json_types import JsonObject

SOURCE: Final = "source"  # the kind of the records of sources
_ENOUGH = 10_000  # more sources than a catalog can have; the quota of a tenant is far below


@dataclass(frozen=True, slots=True)
class SourceSecrets:
    """The parts of a source that may contain a secret.

    url               URL of the document
    document_headers  sent when the document is fetched
    headers           sent with each call
    credentials       name of a security scheme -> a token or key, or a user and a password
    server            the entry of an MCP server
    """

    url: str = ""
    document_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    credentials: Mapping[str, str | list[str]] = field(default_factory=dict[str, Any])
    server: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class LastImport:
    """The outcome of the last import that ended. *tokens* is the cost of the tools' definitions for a model."""

    at_s: float
    tools: int = 0
    tokens: int = 0
    refused: int = 0
    code: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """One source of one catalog.

    shown_url  the URL without possible secrets
    prefix     prefix of the names of its tools, like a server's name; None means the name of the source
    base_url   address of the operations of an OpenAPI document; "" means the address in the document
    origin     the only address that gets the credentials: the address of the operations at the first import
    credential_names  names of the given headers and credentials
    schemes    the security schemes of the document
    per_user   whether each user logs in at the server
    job        job of the last import that was begun; *is_settled* says whether its outcome is in *last*
    version    version of the record; 0 means not written yet
    """

    tenant: str
    catalog: str
    name: str
    kind: SourceKind
    created_s: float
    sealed: str = field(default="", repr=False)
    shown_url: str = ""
    prefix: str | None = None
    base_url: str = ""
    origin: str = ""
    credential_names: tuple[str, ...] = ()
    schemes: JsonObject = field(default_factory=dict[str, Any])
    per_user: bool = False
    job: str = ""
    is_settled: bool = True
    last: LastImport | None = None
    version: int = 0

    @property
    def id(self) -> str:
        return source_id(self.catalog, self.name)

    @property
    def server(self) -> str:
        """The server of its tools."""
        return self.name if self.prefix is None else self.prefix


def source_id(catalog: str, name: str) -> str:
    return f"{catalog}/{name}"


@dataclass(frozen=True, slots=True)
class Sources:
    """Reads and writes sources; blocks no event loop. *clock* gives seconds since 1970."""

    records: RecordStore
    seal: Seal
    clock: Callable[[], float]

    def sealed(self, secrets: SourceSecrets) -> str:
        return self.seal.seal(json.dumps(asdict(secrets), separators=(",", ":")))

    def secrets_of(self, source: CatalogSource) -> SourceSecrets:
        return SourceSecrets(**json.loads(self.seal.open(source.sealed)))

    def find(self, tenant: str, catalog: str, name: str) -> CatalogSource | None:
        """The same as `get`, for threads."""
        record = self.records.get(tenant, SOURCE, source_id(catalog, name), at_s=self.clock())
        return _source(tenant, record) if record else None

    async def get(self, tenant: str, catalog: str, name: str) -> CatalogSource:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self.find, tenant, catalog, name)
        if found is None:
            raise UnknownRecordError(SOURCE, name)
        return found

    async def of_catalog(self, tenant: str, catalog: str) -> list[CatalogSource]:
        """By name."""
        return await asyncio.to_thread(self.all_of, tenant, catalog)

    def all_of(self, tenant: str, catalog: str) -> list[CatalogSource]:
        """The same, for threads."""
        start = source_id(catalog, "")
        page = self.records.page(tenant, SOURCE, after=start, limit=_ENOUGH, at_s=self.clock())
        return [_source(tenant, record) for record in page if record.id.startswith(start)]

    def per_user(self, tenant: str) -> list[CatalogSource]:
        """The servers at which each user logs in, of all catalogs, by catalog and name. For threads."""
        page = self.records.page(tenant, SOURCE, limit=_ENOUGH, at_s=self.clock())
        return [source for source in (_source(tenant, record) for record in page) if source.per_user]

    async def servers_of(self, tenant: str, catalog: str) -> list[str]:
        """The names of the MCP servers among the sources."""
        return [source.name for source in await self.of_catalog(tenant, catalog) if source.kind == "mcp"]

    async def save(self, source: CatalogSource) -> CatalogSource:
        """Write it over the version that it has. Raises ConflictError if there is another by now."""
        return await asyncio.to_thread(self.write, source)

    def write(self, source: CatalogSource) -> CatalogSource:
        """The same, for threads."""
        document = {
            name: value
            for name, value in asdict(source).items()
            if name not in ("tenant", "catalog", "name", "version")
        }
        record = self.records.put(source.tenant, SOURCE, source.id, document, over=source.version, at_s=self.clock())
        return replace(source, version=record.version)

    def settle(self, source: CatalogSource, last: LastImport) -> CatalogSource:
        """Write the outcome of the import of *source*, within a transaction in which its job is known to be running.

        Other changes of the source meanwhile stay. Raises UnknownRecordError if it was deleted.
        """
        there = self.find(source.tenant, source.catalog, source.name)
        if there is None or there.job != source.job:
            raise UnknownRecordError(SOURCE, source.name)
        return self.write(replace(there, is_settled=True, origin=source.origin, schemes=source.schemes, last=last))

    def remove(self, source: CatalogSource) -> None:
        """For threads. Raises ConflictError if the source was changed meanwhile, for example by a new import."""
        self.records.delete(source.tenant, SOURCE, source.id, over=source.version)


def _source(tenant: str, record: Record) -> CatalogSource:
    values: dict[str, Any] = dict(record.document)
    values["credential_names"] = tuple(values["credential_names"])
    if values["last"] is not None:
        values["last"] = LastImport(**values["last"])
    catalog, _, name = record.id.partition("/")
    return CatalogSource(tenant, catalog, name, **values, version=record.version)


_PAGE = 1_000
_ATTEMPTS = 10  # attempts, since others may write to the catalog meanwhile


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """The changes to write over the revision *over*.

    kept    number of unchanged rows of the source
    growth  number of tools by which the catalog grows
    """

    over: int
    put: tuple[StoredTool, ...]
    remove: tuple[str, ...]
    kept: int
    growth: int
    refused: tuple[Refusal, ...]


def plan_exchange(
    contents: CatalogContents,
    tenant: str,
    catalog: str,
    source: str,
    rows: Sequence[StoredTool],
    *,
    servers: Collection[str] = (),
) -> ToolExchange:
    """Plan the replacement of the rows. A row whose name belongs to another owner is refused, and both owners are
    named.

    servers  the MCP servers of the catalog, to which all names with their prefixes belong
    """
    revision = contents.revision(tenant, catalog)
    of_servers = {row.name: server for row in rows if (server := owning_server(row.name, servers))}
    own = {row.name: row for row in _rows_of(contents, tenant, catalog, source)}
    others = contents.get(tenant, catalog, [row.name for row in rows if row.name not in own])
    owners = {row.name: row.source for row in others} | of_servers
    free = [row for row in rows if row.name not in owners]
    wanted = {row.name for row in free}
    put = tuple(row for row in free if row.name not in own or not _is_same(row, own[row.name]))
    remove = tuple(name for name in own if name not in wanted)
    new = sum(row.name not in own for row in free)
    clashes = tuple(_clash(row, owners[row.name]) for row in rows if row.name not in wanted)
    return ToolExchange(revision, put, remove, len(free) - len(put), new - len(remove), clashes)


def nothing(_done: ToolExchange) -> None:
    """Write nothing beside an exchange."""


@dataclass(frozen=True, slots=True)
class Exchanger:
    """Carries out the result of `plan_exchange` in one transaction, and updates the catalog in memory."""

    storage: Storage
    corpora: Corpora
    sources: Sources

    async def plan(self, tenant: str, catalog: str, source: str, rows: Sequence[StoredTool]) -> ToolExchange:
        servers = await self.sources.servers_of(tenant, catalog)
        plan = partial(plan_exchange, self.storage.contents, tenant, catalog, source, rows, servers=servers)
        return await asyncio.to_thread(plan)

    async def exchange(
        self,
        tenant: str,
        catalog: str,
        source: str,
        rows: Sequence[StoredTool],
        *,
        planned: ToolExchange | None = None,
        also: Callable[[ToolExchange], None] = nothing,
    ) -> ToolExchange:
        """Replace all rows or none. *planned* is the result of `plan` for the same rows, if it was called.

        *also* writes first, in the same transaction, in a thread; its errors undo everything. Raises
        ConflictError if others keep writing to the catalog.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        for attempt in range(_ATTEMPTS):
            plan = planned or await self.plan(tenant, catalog, source, rows)
            planned = None
            try:
                if plan.put or plan.remove:
                    await self.corpora.change(
                        ref, put=plan.put, remove=plan.remove, over=plan.over, also=partial(also, plan)
                    )
                else:
                    await in_thread(self._alone, also, plan)
            except ConflictError as error:
                if error.kept is not Kept.CONTENTS or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return plan
        raise AssertionError  # the last attempt has returned or raised

    def _alone(self, also: Callable[[ToolExchange], None], plan: ToolExchange) -> None:
        with self.storage.transaction():
            also(plan)


def owner_of(source: str) -> str:
    """Who owns the tools of a source, for messages."""
    return f"the source {source!r}" if source else "the tools written to the catalog itself"


def _rows_of(contents: CatalogContents, tenant: str, catalog: str, source: str) -> Iterator[StoredTool]:
    after = ""
    while page := contents.page(tenant, catalog, after=after, limit=_PAGE, source=source):
        yield from page
        after = page[-1].name


def _is_same(new: StoredTool, old: StoredTool) -> bool:
    return new.fingerprint == old.fingerprint and _text(new) == _text(old)


def _text(row: StoredTool) -> str:
    return json.dumps(row.document, sort_keys=True)


def _clash(row: StoredTool, owner: str) -> Refusal:
    clash = DuplicateToolError(row.name, first=owner_of(owner), second=owner_of(row.source))
    return Refusal(row.name, row.source, str(clash))


def distinct_rows(rows: Iterable[StoredTool]) -> tuple[list[StoredTool], list[Refusal]]:
    """If several rows have one name, keep the first and refuse the others."""
    found: dict[str, StoredTool] = {}
    refused: list[Refusal] = []
    for row in rows:
        if row.name in found:
            refused.append(_clash(row, found[row.name].source))
        else:
            found[row.name] = row
    return list(found.values()), refused
