"""Opens the engine that a command works with: over sources, read one by one, or over a stored index."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolsearch.cli.output import legible, stderr, stderr_is_watched, warn
from toolsearch.errors import BadSettingError, SourceError, ToolSearchError

if TYPE_CHECKING:
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.catalog.source import LoadReport, Source
    from toolsearch.catalog.sources.mcp import ServerStatus
    from toolsearch.engine import ToolSearch
    from toolsearch.settings import Settings
    from toolsearch.tools.definition import EntryKind, Refusal, Tool

_MOST_WAITED_FOR = 3  # servers whose names fit into the progress bar
DEFAULT_INDEX = Path(".toolsearch")


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """The result of one source.

    contents  how many skills, prompts and resources it gave, by kind
    error     why it could not be read at all, or ""
    """

    source: str
    description: str
    tools: int = 0
    contents: Mapping[EntryKind, int] = field(default_factory=dict["EntryKind", int])
    refused: tuple[Refusal, ...] = ()
    seconds: float = 0.0
    error: str = ""
    servers: tuple[ServerStatus, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A catalog and the results of its sources."""

    catalog: Catalog
    outcomes: list[SourceOutcome] = field(default_factory=list["SourceOutcome"])

    def require_tools(self) -> None:
        """Raises SourceError, with every reason, if the sources gave no tool at all."""
        if len(self.catalog) or self.catalog.contents:
            return
        reasons = [_with_name(refusal) for refusal in self.catalog.refused]
        raise SourceError("; ".join(reasons) or "the sources hold no tools")


def _with_name(refusal: Refusal) -> str:
    is_named = refusal.reason.startswith(refusal.name) or repr(refusal.name) in refusal.reason
    return refusal.reason if is_named else f"{refusal.name}: {refusal.reason}"


@contextmanager
def loaded_sources(specs: Sequence[str]) -> Generator[Loaded]:
    """Read the sources in turn, with a bar on stderr, and close them at the end. A folder or a pattern means its files.

    A source that cannot be read causes a warning, and the others are read. Output of sources goes to stderr.
    """
    from rich.progress import Progress

    from toolsearch.catalog.catalog import Catalog
    from toolsearch.catalog.loading import expanded

    specs = [each for spec in specs for each in expanded(spec)]
    with closing(Catalog()) as catalog:
        loaded = Loaded(catalog)
        with Progress(console=stderr(), transient=True, disable=not stderr_is_watched()) as bar:
            task = bar.add_task("Reading sources", total=len(specs))

            def wait_for(servers: Sequence[str]) -> None:
                bar.update(task, description=f"Waiting for {_listed(servers)}")

            for spec in specs:
                bar.update(task, description=f"Reading {legible(spec)}")
                loaded.outcomes.append(_load(loaded, spec, wait_for))
                bar.advance(task)
        for outcome in loaded.outcomes:
            if outcome.error and len(specs) > 1:
                warn(outcome.error if outcome.source in outcome.error else f"{outcome.source}: {outcome.error}")
        yield loaded


def _listed(servers: Sequence[str]) -> str:
    more = len(servers) - _MOST_WAITED_FOR
    return legible(", ".join(servers[:_MOST_WAITED_FOR])) + (f" and {more} more" if more > 0 else "")


def _load(loaded: Loaded, spec: str, wait_for: Callable[[Sequence[str]], None]) -> SourceOutcome:
    from toolsearch.catalog.loading import PrefixedSource, open_source, portable_spec
    from toolsearch.catalog.sources.mcp import McpSource

    started_s = time.perf_counter()
    source: Source | None = None
    try:
        with redirect_stdout(sys.stderr):  # a module may print while it is imported
            source = open_source(spec, on_waiting=wait_for)
            report = loaded.catalog.load(source, spec=portable_spec(spec))
    except ToolSearchError as error:
        loaded.catalog.load(_UnreadSource(spec, str(error)))
        description = source.description if source else spec
        return SourceOutcome(spec, description, error=str(error), seconds=time.perf_counter() - started_s)
    inner = source.source if isinstance(source, PrefixedSource) else source
    return SourceOutcome(
        spec,
        source.description,
        tools=sum(entry.definition.kind == "tool" for entry in report.tools),
        contents=contents_by_kind(report.tools),
        refused=report.refused,
        seconds=time.perf_counter() - started_s,
        servers=tuple(inner.servers) if isinstance(inner, McpSource) else (),
        warnings=inner.warnings if isinstance(inner, McpSource) else (),
    )


def contents_by_kind(entries: Iterable[Tool]) -> dict[EntryKind, int]:
    """How many skills, prompts and resources there are, in that order; a kind without any is left out."""
    from toolsearch.tools.definition import KINDS

    counts = Counter(each.definition.kind for each in entries)
    return {kind: counts[kind] for kind in KINDS if kind != "tool" and counts[kind]}


class _UnreadSource:
    """Replaces a source that cannot be read, so that the catalog and its index list it as refused."""

    def __init__(self, spec: str, reason: str) -> None:
        self.description = spec
        self._reason = reason

    def load(self) -> LoadReport:
        from toolsearch.catalog.source import LoadReport
        from toolsearch.tools.definition import Refusal

        return LoadReport((), (Refusal(self.description, self.description, self._reason),))

    def close(self) -> None:
        """Nothing is held."""


def read_settings(file: Path | None, **options: object) -> Settings:
    """Read the settings of the environment and of *file*. *options*, named ``section__name``, win over both if they are
    not None.

    Raises BadSettingError.
    """
    from toolsearch.settings import Settings

    overrides = {name.replace("__", "."): value for name, value in options.items()}
    settings = Settings.from_environment(os.environ, file, overrides=overrides)
    if options.get("index__encoder") is None or settings.index.encoder is None or settings.index.strategy != "auto":
        return settings
    # Auto would search without the encoder if it fails.
    named = settings.index.model_copy(update={"strategy": "hybrid"})
    return settings.model_copy(update={"index": named})


def portable_encoder(spec: str | None) -> str | None:
    """*spec* with its folder, if it names one, made absolute."""
    if spec is None:
        return None
    prefix, folder = ("onnx:", spec.removeprefix("onnx:")) if spec.startswith("onnx:") else ("", spec)
    return f"{prefix}{Path(folder).resolve()}" if Path(folder).is_dir() else spec


@contextmanager
def opened_engine(
    index: Path | None, sources: Sequence[str] | None, settings_file: Path | None, **options: object
) -> Generator[ToolSearch]:
    """Open the engine over *sources* if given, else over the index. At the end everything that it started is closed.

    *options* are those of `read_settings`. Raises BadSettingError if both or neither exist or a setting cannot be used,
    SourceError if no source gives a tool, and IndexStoreError.
    """
    from toolsearch.wiring import build_engine, open_engine

    if sources and index:
        raise BadSettingError("give either --index or --source, not both")
    settings = read_settings(settings_file, **options, index__index_dir="none" if sources else index)
    with ExitStack() as stack:
        if sources:
            loaded = stack.enter_context(loaded_sources(sources))
            loaded.require_tools()
            engine = build_engine(settings, loaded.catalog)
        else:
            engine = open_engine(settings, index_folder(settings))
        yield stack.enter_context(engine)


@contextmanager
def opened_catalog(
    specs: Sequence[str] | None, index: Path | None, settings_file: Path | None, **options: object
) -> Generator[tuple[Catalog, Settings]]:
    """Open the tools of the sources, or of the index without sources, and return how to index them anew, in memory.

    The settings name the encoder of the index unless *options*, which are those of `read_settings`, name another one.
    Raises what `opened_engine` does.
    """
    if specs and index:
        raise BadSettingError("give either sources or --index, not both")
    settings = read_settings(settings_file, **options, index__index_dir="none" if specs else index)
    if specs:
        with loaded_sources(specs) as loaded:
            loaded.require_tools()
            yield loaded.catalog, settings
        return
    from toolsearch.catalog.index_directory import IndexDirectory

    stored = IndexDirectory(index_folder(settings)).read()
    encoder = settings.index.encoder if "encoder" in settings.index.model_fields_set else stored.encoder_spec
    given = settings.index.model_fields_set
    requests = settings.index.requests if "requests" in given else stored.requests.shipped
    files = settings.index.requests_files if "requests_files" in given else stored.requests.files
    in_memory = settings.index.model_copy(
        update={"index_dir": None, "encoder": encoder, "requests": requests, "requests_files": files}
    )
    with closing(stored.catalog()) as catalog:
        yield catalog, settings.model_copy(update={"index": in_memory})


def index_folder(settings: Settings) -> Path:
    """The folder of the index to read. Raises BadSettingError if none is set and there is no .toolsearch here."""
    if settings.index.index_dir is not None:
        return settings.index.index_dir
    if not DEFAULT_INDEX.is_dir():
        raise BadSettingError(
            f"there is no index in ./{DEFAULT_INDEX}; make one with 'toolsearch index SOURCE...', "
            "or name one by --index DIR, or read a source directly by --source SOURCE"
        )
    return DEFAULT_INDEX
