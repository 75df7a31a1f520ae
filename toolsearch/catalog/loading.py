"""Opens the source of tools that a command-line argument means, with a prefix for the names of its tools."""

from __future__ import annotations

import glob
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from toolsearch.catalog.source import KnowsServers, LiveSource, LoadReport, Source
from toolsearch.documents.json_values import is_object
from toolsearch.errors import SourceError
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import (
    NAME_CHARACTERS,
    SEPARATOR,
    all_namespaced,
    did_you_mean,
    given_name,
    title_with_name,
)
from toolsearch.upstreams.interface import ServerHealth


class PrefixedSource:
    """Adds a prefix: ``forecast`` becomes ``<prefix>__forecast``, and ``mail__send`` becomes
    ``<prefix>__mail__send``.
    """

    def __init__(self, source: Source, prefix: str) -> None:
        self.source = source
        self._prefix = prefix

    @property
    def description(self) -> str:
        return self.source.description

    def load(self) -> LoadReport:
        return self._prefixed(self.source.load())

    def close(self) -> None:
        self.source.close()

    def server_health(self) -> Mapping[str, ServerHealth]:
        if not isinstance(self.source, KnowsServers):
            return {}
        return {self._server(server): health for server, health in self.source.server_health().items()}

    def _prefixed(self, report: LoadReport) -> LoadReport:
        purposes = {self._server(server): purpose for server, purpose in report.purposes.items()}
        own_names: defaultdict[str, list[str]] = defaultdict(list)
        for tool in report.tools:
            own_names[tool.definition.server].append(_own_name(tool))
        names = {server: all_namespaced(self._server(server), own) for server, own in own_names.items()}
        tools = tuple(self._named(tool, names[tool.definition.server][_own_name(tool)]) for tool in report.tools)
        return replace(report, tools=tools, purposes=purposes)

    def _named(self, tool: Tool, name: str) -> Tool:
        server = self._server(tool.definition.server)
        title = tool.definition.title
        if not given_name(tool.definition):
            title = title_with_name(title, _own_name(tool), server)
        return replace(tool, definition=replace(tool.definition, name=name, title=title, server=server))

    def _server(self, server: str) -> str:
        return f"{self._prefix}{SEPARATOR}{server}" if server else self._prefix


class PrefixedLiveSource(PrefixedSource):
    """Adds a prefix to a source whose tools change."""

    def __init__(self, source: LiveSource, prefix: str) -> None:
        super().__init__(source, prefix)
        self._live = source

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        self._live.follow(lambda report: changed(self._prefixed(report)))


def _own_name(tool: Tool) -> str:
    return given_name(tool.definition) or tool.definition.local_name


MODULE_PREFIX = "module:"
SKILLS_PREFIX = "skills:"


def open_source(spec: str, *, on_waiting: Callable[[Sequence[str]], None] | None = None) -> Source:
    """Return the source that a command-line argument means.

    ``module:NAME`` or the name of an importable module; a ``.json``, ``.jsonl``, ``.yaml`` or ``.yml`` file with MCP
    servers (``mcpServers`` or ``servers``), an OpenAPI document, or a listing of tool definitions, told apart by
    content; ``skills:FOLDER``, a folder of skills. ``NAME=`` in front puts ``NAME__`` before the names of its tools,
    and is the name of the server of an OpenAPI document and of skills. *on_waiting* is as in `McpSource`. Raises
    SourceError for anything else.
    """
    from toolsearch.catalog.source import LiveSource
    from toolsearch.catalog.sources.openapi import OpenApiSource
    from toolsearch.catalog.sources.skills import SkillsSource

    prefix, plain = split_prefix(spec)
    source = _open(plain, prefix, on_waiting)
    if not prefix or isinstance(source, OpenApiSource | SkillsSource):
        return source
    return PrefixedLiveSource(source, prefix) if isinstance(source, LiveSource) else PrefixedSource(source, prefix)


def _open(spec: str, server: str, on_waiting: Callable[[Sequence[str]], None] | None) -> Source:
    from toolsearch.catalog.sources.functions import ModuleSource
    from toolsearch.catalog.sources.skills import SkillsSource
    from toolsearch.documents.reading import SUFFIXES

    if not spec:
        raise SourceError("a source has no name; leave it out, or give a file or a module")
    if "://" in spec:
        raise SourceError(f"{spec!r} is an address, but nothing is fetched: download the file and give its path")
    if spec.startswith(MODULE_PREFIX):
        return ModuleSource(spec.removeprefix(MODULE_PREFIX))
    if spec.startswith(SKILLS_PREFIX):
        return SkillsSource(spec.removeprefix(SKILLS_PREFIX), server=server)
    path = Path(spec)
    if path.is_dir():
        raise SourceError(
            f"{spec!r} is a folder: give each of its files that ends in one of {_known_endings()}; "
            f"if it holds skills, write {SKILLS_PREFIX}{spec}"
        )
    if _is_pattern(spec):
        raise SourceError(f"{spec!r} matches no file")
    if path.suffix.lower() in SUFFIXES:
        return _open_file(path, server, on_waiting)
    if _is_importable(spec):
        return ModuleSource(spec)
    hint = did_you_mean(spec, (name for name in sys.stdlib_module_names if not name.startswith("_")))
    raise SourceError(f"{spec!r} is neither an importable module nor a file ending in one of {_known_endings()}{hint}")


def expanded(spec: str) -> list[str]:
    """If *spec* is a folder or a pattern such as ``*.json``, return an argument for each of its files, in order.

    A folder means the files in it that `open_source` reads, without hidden files and subfolders. Anything that means no
    file is returned unchanged.
    """
    prefix, plain = split_prefix(spec)
    found = glob.glob(plain, recursive=True) if _is_pattern(plain) else _files_in(plain)  # noqa: PTH207
    return [f"{prefix}={path}" if prefix else path for path in sorted(found)] or [spec]


def _files_in(folder: str) -> list[str]:
    from toolsearch.documents.reading import SUFFIXES

    inside = Path(folder).iterdir() if folder and Path(folder).is_dir() else ()
    return [str(each) for each in inside if each.suffix.lower() in SUFFIXES and not each.name.startswith(".")]


def split_prefix(spec: str) -> tuple[str, str]:
    """Return the prefix, "" if there is none, and the rest; ``a=b.json`` is a file if there is one of that name."""
    prefix, equals, rest = spec.partition("=")
    is_prefix = equals and rest and NAME_CHARACTERS.issuperset(prefix) and not Path(spec).exists()
    return (prefix, rest) if is_prefix else ("", spec)


def portable_spec(spec: str) -> str:
    """Return *spec* in a form that means the same from any working directory."""
    from toolsearch.documents.reading import SUFFIXES

    prefix, plain = split_prefix(spec)
    kind = next((each for each in (MODULE_PREFIX, SKILLS_PREFIX) if plain.startswith(each)), "")
    is_file = kind == SKILLS_PREFIX or (not kind and Path(plain).suffix.lower() in SUFFIXES)
    portable = f"{kind}{Path(plain.removeprefix(kind)).expanduser().resolve()}" if is_file else plain
    return f"{prefix}={portable}" if prefix else portable


def _open_file(path: Path, server: str, on_waiting: Callable[[Sequence[str]], None] | None) -> Source:
    from toolsearch.catalog.sources.json_listing import JsonListingSource
    from toolsearch.catalog.sources.openapi import OpenApiSource
    from toolsearch.catalog.sources.openapi_document import server_name
    from toolsearch.documents.reading import is_json_lines, read_document

    if is_json_lines(path):  # JSON lines are only listings, and are read line by line
        return JsonListingSource(path)
    document = read_document(path)
    if is_openapi(document):
        named = server or server_name(document, path.stem)
        return OpenApiSource(document, server=named, description=str(path))
    if is_mcp_config(document):
        from toolsearch.catalog.sources.mcp import McpSource

        return McpSource(path, on_waiting=on_waiting)
    if isinstance(document, str):  # a listing would take a text for a path
        raise SourceError(f"{path} holds a text, not a list of tool definitions")
    return JsonListingSource(document, description=str(path))


def _is_pattern(spec: str) -> bool:
    return glob.has_magic(spec) and not Path(spec).exists()


def _known_endings() -> str:
    from toolsearch.documents.reading import SUFFIXES

    return ", ".join(sorted(SUFFIXES))


def is_openapi(document: Json) -> bool:
    """Whether it claims to be an OpenAPI document, even one of an unreadable version."""
    return is_object(document) and ("openapi" in document or "swagger" in document)


def is_mcp_config(document: Json) -> bool:
    """Whether it maps names to MCP servers, as desktop clients (``mcpServers``) or VS Code (``servers``) do."""
    return is_object(document) and any(is_object(document.get(key)) for key in ("mcpServers", "servers"))


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
