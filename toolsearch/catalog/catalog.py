"""The catalog: tools, skills, prompts and resources by unique name, their sources, and those that were refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from toolsearch.catalog.changes import CatalogChange, ChangeFeed, ReportFollower
from toolsearch.catalog.loading import open_source, portable_spec
from toolsearch.catalog.request_writer import CALLS_AT_ONCE, TOOLS_PER_CALL, RequestWriter
from toolsearch.catalog.snapshot import CatalogSnapshot, FingerprintCache, KnowsFingerprints, ReadsOnce
from toolsearch.catalog.source import (
    KnowsServers,
    LiveSource,
    LoadReport,
    Source,
    ToolLike,
    by_name,
    refusal,
    sift,
    with_spec,
)
from toolsearch.errors import BadToolError, DuplicateToolError, UnknownToolError
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import near_names
from toolsearch.tools.summaries import purpose_of
from toolsearch.upstreams.interface import CALL_TIMEOUT_S, CONNECT_TIMEOUT_S, ServerHealth

if TYPE_CHECKING:
    from toolsearch.catalog.enrichment import Enrichment, EnrichmentPlan, EnrichmentReport
    from toolsearch.catalog.sources.openapi_requests import SendRequest

logger = logging.getLogger(__name__)


class CopyableMapping(Protocol):
    """The mapping that holds the catalog's tools: a dict, or a stored table that reads tools when they are needed."""

    def copy(self) -> Self: ...
    def get(self, name: str, /) -> Tool | None: ...
    def keys(self) -> KeysView[str]: ...
    def update(self, tools: Mapping[str, Tool], /) -> None: ...
    def values(self) -> Iterable[Tool]: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Tool: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


class Catalog:
    """Tools by unique name, in insertion order; apart from them, `contents`: skills, prompts and resources, whose names
    no tool has. Safe to share between threads.

    Each change is atomic: it happens as a whole, or it raises and nothing has changed. An iteration sees the tools as
    they were when it began.
    """

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        """*tools* are definitions, or anything that `as_tools` takes: tools, functions, objects with `@tool` methods,
        lists.
        """
        if not isinstance(cast("object", tools), Iterable):
            raise BadToolError(f"a catalog is made of a list of tools, not of a {type(tools).__name__}; write [tool]")
        self._tools: CopyableMapping = dict[str, Tool]()
        self._contents: Mapping[str, Tool] = MappingProxyType({})  # sorted by name; replaced as a whole
        self._owners: dict[str, object] = {}  # name -> its source; only that source may replace it
        self._refused: dict[object, tuple[Refusal, ...]] = {}  # owner -> the tools that it refused
        self._purposes: dict[object, Mapping[str, str]] = {}  # owner -> server -> purpose
        self._sources: list[Source] = []
        self._health: tuple[Callable[[], Mapping[str, ServerHealth]], ...] = ()
        self._version = 0
        self._fingerprints = FingerprintCache()
        self._snapshot: CatalogSnapshot | None = None
        self._feed = ChangeFeed()
        self._lock = threading.Lock()
        self.add(*tools)

    @classmethod
    def from_functions(cls, functions: Iterable[Callable[..., Any]], *, server: str = "") -> Self:
        """Take Python functions; functions that cannot be tools are in `refused`."""
        from toolsearch.catalog.sources.functions import FunctionSource

        return cls._from(FunctionSource(functions, server=server))

    @classmethod
    def from_module(cls, module: str | ModuleType) -> Self:
        """Take the public functions of a module, named ``<module>__<function>``."""
        from toolsearch.catalog.sources.functions import ModuleSource

        return cls._from(ModuleSource(module))

    @classmethod
    def from_json(cls, listing: str | Path | Iterable[Json] | Mapping[str, Json], *, server: str = "") -> Self:
        """Take a JSON or JSONL listing (a path, or the parsed value) of OpenAI, Anthropic or MCP definitions."""
        from toolsearch.catalog.sources.json_listing import JsonListingSource

        return cls._from(JsonListingSource(listing, server=server))

    @classmethod
    def from_openapi(
        cls,
        document: str | Path | Mapping[str, Json],
        *,
        server: str | None = None,
        caller: SendRequest | None = None,
    ) -> Self:
        """Take the operations of an OpenAPI 3 document; *caller* sends their requests; without it no tool can run."""
        from toolsearch.catalog.sources.openapi import OpenApiSource

        return cls._from(OpenApiSource(document, server=server, caller=caller))

    @classmethod
    def from_mcp(
        cls,
        config: str | Path | Mapping[str, Json],
        *,
        environment: Mapping[str, str] | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        only: Collection[str] | None = None,
    ) -> Self:
        """Start the MCP servers of an ``mcpServers`` file and follow their listings. Close the catalog.

        environment        source of the values for ``${NAME}``; None: this process's environment, as it is now
        connect_timeout_s  seconds for one server to start and to list its tools
        call_timeout_s     seconds for one call
        only               names of the servers to take; None: all
        """
        from toolsearch.catalog.sources.mcp import McpSource

        source = McpSource(
            config,
            environment=environment,
            connect_timeout_s=connect_timeout_s,
            call_timeout_s=call_timeout_s,
            only=only,
        )
        return cls._from(source)

    @classmethod
    def _from(cls, source: Source) -> Self:
        catalog = cls()
        try:
            catalog.load(source)
        except BaseException:
            catalog.close()
            raise
        return catalog

    def add(self, *tools: ToolLike) -> None:
        """Add new tools. Raises DuplicateToolError, which names both owners, or BadToolError."""
        new = by_name(tools)
        with self._lock:
            for name, tool in new.items():
                if (taken := self.find_entry(name)) is not None:
                    raise DuplicateToolError(name, first=taken.owner, second=tool.owner)
            self._put(new)
        self._feed.deliver()

    def replace(self, *tools: ToolLike) -> None:
        """Replace the tools of the same names. Raises UnknownToolError if the catalog has no tool of a name."""
        new = by_name(tools)
        with self._lock:
            self._require(new)
            self._put(new)
        self._feed.deliver()

    def put(self, *tools: ToolLike) -> None:
        """Add the tools whose names are new and replace the others. Raises DuplicateToolError where an entry of another
        kind has the name.
        """
        new = by_name(tools)
        with self._lock:
            self._put(new)
        self._feed.deliver()

    def remove(self, *names: str) -> None:
        """Remove tools. Raises UnknownToolError if the catalog lacks one of *names*, and then removes none."""
        gone = tuple(dict.fromkeys(names))
        with self._lock:
            self._require(gone)
            self._apply({}, gone)
        self._feed.deliver()

    def change(self, put: Iterable[ToolLike] = (), remove: Iterable[str] = ()) -> None:
        """Remove the existing tools named in *remove*, and put those of *put* in place of any entry of their names, in
        one change.

        A reader without the lock sees the whole change or none of it.
        """
        new, gone = by_name(put), dict.fromkeys(remove)
        with self._lock:
            self._apply(new, gone)
        self._feed.deliver()

    def load(self, source: Source | str | Path, *, spec: str = "") -> LoadReport:
        """Add the tools of *source*, which belongs to this catalog from now on: `close` closes it.

        A text is a path or ``module:NAME``, as ``toolsearch index`` takes it. *spec* is the text that opens *source*
        again (see `Tool.spec`). A `LiveSource` is followed until `close`: when its tools change, the new ones replace
        the old ones, in a thread.

        A bad tool, or one whose name is taken, is refused with a reason, and the others are added. Returns the added
        tools and the refusals. Raises SourceError if the source cannot be read at all.
        """
        if isinstance(source, str | Path):
            spec, source = portable_spec(str(source)), open_source(str(source))
        with self._lock:
            self._sources.append(source)
        owner = object()
        outcome = self._take(owner, with_spec(source.load(), spec), source.description)
        if isinstance(source, KnowsServers):
            self.ask_health(source.server_health)
        if isinstance(source, LiveSource):
            source.follow(ReportFollower(lambda report: self._follow(source, owner, with_spec(report, spec))).changed)
        return outcome

    def sync(self, owner: str, tools: Iterable[Tool], *, purposes: Mapping[str, str] | None = None) -> LoadReport:
        """Replace all tools of *owner* by *tools*, in one change. Returns the added tools and the refusals.

        *purposes* are those of their servers, as in `LoadReport`.

        A bad tool, or one whose name belongs to somebody else, is refused with a reason, and the others are added;
        `refused` keeps the reasons of the last time only. A tool with the same definition as before is not a change,
        even if another callback runs it. A tool that is put, replaced or removed by its name no longer belongs to
        *owner*.
        """
        return self._take(owner, LoadReport(tuple(tools), purposes=purposes or {}), owner)

    def get(self, name: str) -> Tool:
        """Return the tool of that name. Raises UnknownToolError, which suggests similar names."""
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownToolError(name, near=near_names(name, self.names()))
        return tool

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def find_entry(self, name: str) -> Tool | None:
        """The tool, skill, prompt or resource of that name."""
        return self._tools.get(name) or self._contents.get(name)

    @property
    def contents(self) -> Mapping[str, Tool]:
        """The skills, prompts and resources by name, sorted."""
        return self._contents

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        """True, even for an empty catalog: ``catalog or default`` must keep a catalog that was passed."""
        return True

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools())

    def tools(self) -> list[Tool]:
        with self._lock:
            return list(self._tools.values())

    def entries(self) -> list[Tool]:
        """The tools, followed by the skills, prompts and resources."""
        with self._lock:
            return [*self._tools.values(), *self._contents.values()]

    def names(self) -> list[str]:
        with self._lock:
            return list(self._tools)

    def unowned_names(self) -> list[str]:
        """The names of the entries that were put or stored by themselves, and not by `sync` or `load`."""
        with self._lock:
            return [name for name in (*self._tools, *self._contents) if name not in self._owners]

    @property
    def refused(self) -> list[Refusal]:
        """The tools of the sources that could not be added, and why."""
        with self._lock:
            return [refusal for refused in self._refused.values() for refusal in refused]

    def server_purpose(self, server: str) -> str:
        """The purpose of *server*, in one printable line of at most 100 characters; "" if its source does not state it.

        The words come from the server, the document or the module itself. The caller of this method has to check
        whether its own caller may know of the server.
        """
        return self.snapshot().purposes.get(server, "")

    def server_health(self) -> Mapping[str, ServerHealth]:
        """The health by server, as far as it is known. The caller of this method has to check whether its own caller
        may know of a server. If two owners describe one server, the first wins.
        """
        return {server: each for ask in reversed(self._health) for server, each in ask().items()}

    def ask_health(self, ask: Callable[[], Mapping[str, ServerHealth]]) -> Callable[[], None]:
        """Let *ask* tell the health of servers whose tools are in this catalog. Return a function that ends that."""
        with self._lock:
            self._health = (*self._health, ask)

        def stop() -> None:
            with self._lock:
                self._health = tuple(each for each in self._health if each is not ask)

        return stop

    def snapshot(self) -> CatalogSnapshot:
        """Return the catalog as it is now. As long as nothing changes, this is the same object."""
        with self._lock:
            if self._snapshot is None:
                tools = self._tools.copy()
                known = tools.known_fingerprints if isinstance(tools, KnowsFingerprints) else dict[str, str]
                read_once = tools.read_once if isinstance(tools, ReadsOnce) else None
                self._snapshot = CatalogSnapshot(
                    MappingProxyType(tools),
                    self._version,
                    self._fingerprints,
                    self._all_purposes(),
                    known,
                    read_once,
                    self._contents,
                )
            return self._snapshot

    def plan_enrichment(self, file: str | Path, *, tools_per_call: int = TOOLS_PER_CALL) -> EnrichmentPlan:
        """Estimate the cost of `enrich` for *file*, without asking the model. Raises SourceError if the file is
        damaged.
        """
        return self._enrichment(file, tools_per_call).plan

    async def enrich(
        self,
        writer: RequestWriter,
        file: str | Path,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        tools_per_call: int = TOOLS_PER_CALL,
        at_once: int = CALLS_AT_ONCE,
        progress: Callable[[int, int], None] | None = None,
    ) -> EnrichmentReport:
        """Let *writer*, for example a `ChatClient`, write requests of users who need each tool or skill, and keep them
        in *file*.

        A tool for which the file has requests of the same definition is not asked for again. The file is written after
        each call, and the option `requests_files` of a `ToolSearch` takes it.

        max_calls       most calls of the model
        max_tokens      most tokens of all calls, input and output together
        tools_per_call  number of tools in one call
        at_once         calls that may wait for their answers at the same time; one if *max_tokens* is given
        progress        gets the number of tools asked for, and the number of all tools

        A bad answer affects no other tool and is named in the report. Raises SourceError if the file is damaged
        or cannot be written, and BadSettingError.
        """
        work = self._enrichment(file, tools_per_call)
        return await work.run(writer, max_calls=max_calls, max_tokens=max_tokens, at_once=at_once, progress=progress)

    def _enrichment(self, file: str | Path, tools_per_call: int) -> Enrichment:
        from toolsearch.catalog.enrichment import Enrichment, found_definitions

        entries = found_definitions(self.entries())
        return Enrichment(entries, Path(file), tools_per_call=tools_per_call)

    def subscribe(self, listener: Callable[[CatalogChange], None]) -> Callable[[], None]:
        """Call *listener* with each change from now on. Returns a function that ends this.

        Changes are delivered in their order, without a lock of the catalog. A listener runs in the thread that made the
        change, or in another thread that is delivering a change of its own. It is called before the call that made the
        change returns, unless that call was made by a listener. If it raises, that is logged.
        """
        return self._feed.subscribe(listener)

    def close(self) -> None:
        """Close the sources that hold connections or processes; the tools stay listed. May be called twice."""
        with self._lock:
            sources, self._sources, self._health = self._sources, [], ()
        for source in reversed(sources):
            try:
                source.close()
            except Exception:
                logger.exception("%s could not be closed", source.description)

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the tools, but neither the sources, which `close` would close, nor the listeners."""
        with self._lock:
            return {
                "_tools": {name: self._tools[name] for name in self._tools},
                "_contents": dict(self._contents),
                "_owners": dict(self._owners),
                "_refused": dict(self._refused),
                "_purposes": dict(self._purposes),
                "_version": self._version,
            }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        Catalog.__init__(self)
        self.__dict__.update(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require(self, names: Iterable[str]) -> None:
        for name in names:
            if self.find_entry(name) is None:
                raise UnknownToolError(name, near=near_names(name, self._tools))

    def _put(self, new: Mapping[str, Tool]) -> None:
        for name, tool in new.items():
            taken = self.find_entry(name)
            if taken is not None and taken.definition.kind != tool.definition.kind:
                raise DuplicateToolError(name, first=taken.owner, second=tool.owner)
        tools, contents = _by_kind(new)
        replaced = tuple(name for name in tools if name in self._tools)
        self._tools.update(tools)
        for name in new:
            self._owners.pop(name, None)
        self._changed(CatalogChange(tuple(tools.values()), replaced, self._exchange_contents(contents)))

    def _follow(self, source: Source, owner: object, report: LoadReport) -> None:
        self._take(owner, report, source.description, is_open=lambda: any(each is source for each in self._sources))

    def _take(
        self, owner: object, report: LoadReport, description: str, *, is_open: Callable[[], bool] = lambda: True
    ) -> LoadReport:
        """Do what `sync` does, unless the source has been closed meanwhile."""
        good, refused = sift(report.tools, description)
        good = [self._with_known_definition(tool) for tool in good]
        new: dict[str, Tool] = {}
        with self._lock:
            if not is_open():
                return LoadReport(())
            for tool in good:
                taken = new.get(tool.name) or self._of_another(owner, tool.name)
                if taken is None:
                    new[tool.name] = tool
                else:
                    clash = DuplicateToolError(tool.name, first=taken.owner, second=tool.owner)
                    refused.append(refusal(tool, description, clash))
            self._refused[owner] = outcome_refused = (*report.refused, *refused)
            self._purposes[owner] = {server: purpose_of(text) for server, text in report.purposes.items()}
            self._exchange(owner, new)
        self._feed.deliver()
        if outcome_refused:
            logger.info("%s: took %d tools and refused %d", description, len(new), len(outcome_refused))
        return LoadReport(tuple(new.values()), outcome_refused, report.purposes)

    def _with_known_definition(self, tool: Tool) -> Tool:
        """Return *tool* with the definition object that the catalog already has, if both are equal.

        Caches are keyed by the object of a definition. The two are compared as JSON, because 1 == True in Python.
        """
        known = self.find_entry(tool.name)
        if known is None or self._fingerprints.of(known.definition) != tool.definition.fingerprint():
            return tool
        return replace(tool, definition=known.definition)

    def _of_another(self, owner: object, name: str) -> Tool | None:
        return None if self._owners.get(name) == owner else self.find_entry(name)

    def _exchange(self, owner: object, new: Mapping[str, Tool]) -> None:
        """Make *new* the entries of *owner*."""
        given_up = [name for name, other in self._owners.items() if other == owner and name not in new]
        same = {name for name, tool in new.items() if _is_defined_by(self._tools.get(name), tool.definition)}
        self._apply(new, given_up, same=same)
        self._owners |= dict.fromkeys(new, owner)

    def _apply(self, new: Mapping[str, Tool], gone: Iterable[str], *, same: Collection[str] = ()) -> None:
        """Put *new* in place of the entries of their names, of any kind, and take out *gone*, in one change.

        A reader without the lock sees the whole change or none of it. Tools in *same* have the definition that they
        had, and are no change.
        """
        tools, contents = _by_kind(new)
        left_out = [name for name in gone if name not in new]
        before, after = self._tools, self._tools.copy()
        after.update(tools)
        removed = [name for name in (*left_out, *contents) if name in before]
        for name in removed:
            del after[name]
        for name in left_out:
            self._forget(name)
        for name in new:
            self._owners.pop(name, None)
        self._tools, self._snapshot = after, None
        are_contents_changed = self._exchange_contents(contents, {*left_out, *tools})
        added = [tool for name, tool in tools.items() if name not in same]
        replaced = [tool.name for tool in added if tool.name in before]
        self._changed(CatalogChange(tuple(added), (*removed, *replaced), are_contents_changed))

    def _exchange_contents(self, new: Mapping[str, Tool], gone: Collection[str] = ()) -> bool:
        """Put *new* in place of the entries of their names, and leave out *gone*. Returns whether any entry differs: in
        its definition, in what its server lists, or in what reads it.
        """
        before = self._contents
        if not new and not any(name in before for name in gone):
            return False
        after = {name: tool for name, tool in before.items() if name not in gone} | dict(new)
        self._contents, self._snapshot = MappingProxyType(dict(sorted(after.items()))), None
        return before.keys() != after.keys() or not all(
            _reads_the_same(before[name], tool) for name, tool in new.items()
        )

    def _all_purposes(self) -> Mapping[str, str]:
        """The purposes by server; if two owners describe one server, the first wins."""
        told = [item for each in reversed(self._purposes.values()) for item in each.items() if item[1]]
        return MappingProxyType(dict(told))

    def _forget(self, name: str) -> None:
        self._owners.pop(name, None)
        self._fingerprints.forget(name)

    def _changed(self, change: CatalogChange) -> None:
        if change.added or change.removed or change.contents:
            self._version += 1
            self._snapshot = None
            self._feed.append(replace(change, version=self._version))


class StoredCatalog(Catalog):
    """A catalog of tools that were stored. They are not checked again, because the store checked them when it wrote
    them.
    """

    def __init__(
        self,
        tools: CopyableMapping,
        *,
        refused: Iterable[Refusal] = (),
        purposes: Mapping[str, str] | None = None,
        source: Source | None = None,
        contents: Iterable[Tool] = (),
    ) -> None:
        """*source* runs the tools; *refused* and *purposes* are those from the time when the tools were loaded."""
        super().__init__()
        self._contents = MappingProxyType({tool.name: tool for tool in contents})
        self._tools, self._refused, self._sources = tools, {source: tuple(refused)}, [source] if source else []
        self._purposes[source] = purposes or {}


def _by_kind(entries: Mapping[str, Tool]) -> tuple[dict[str, Tool], dict[str, Tool]]:
    """The tools, and the others."""
    tools = {name: tool for name, tool in entries.items() if tool.definition.kind == "tool"}
    return tools, {name: tool for name, tool in entries.items() if name not in tools}


def _is_defined_by(tool: Tool | None, definition: ToolDefinition) -> bool:
    return tool is not None and tool.definition is definition


def _reads_the_same(before: Tool, after: Tool) -> bool:
    """Whether also the manifests of skills are the same."""
    is_read_alike = before.origin == after.origin and before.callback == after.callback
    return is_read_alike and _is_defined_by(before, after.definition)
