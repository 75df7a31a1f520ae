"""Runs the tools of a stored catalog: the source of a tool is opened again when the tool is first called."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from toolsearch.catalog.loading import open_source, split_prefix
from toolsearch.catalog.source import LoadReport, Source
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.callbacks import run_callback, run_function
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import SEPARATOR
from toolsearch.tools.results import converted_by


class ReopenedSources:
    """The sources opened so far, each once. Closing the catalog closes them."""

    description = "sources of a stored catalog"

    def __init__(self) -> None:
        self._opened: dict[tuple[str, str], tuple[Source, dict[str, Tool]]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ReopenedSources], tuple[()]]:
        """Whoever unpickles a tool opens its source anew."""
        return ReopenedSources, ()

    def load(self) -> LoadReport:
        return LoadReport(())

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, {}
        for source, _ in opened.values():
            source.close()

    def find(self, spec: str, server: str, name: str) -> Tool:
        """Return *name* of *spec*, which has a callback. Raises SourceError, or ToolExecutionError if it is gone.

        Of MCP servers only *server* is started.
        """
        with self._lock:
            if (spec, server) not in self._opened:
                source = _open(spec, server)
                self._opened[spec, server] = (source, {tool.name: tool for tool in source.load().tools})
            tool = self._opened[spec, server][1].get(name)
        if tool is None or tool.callback is None:
            raise ToolExecutionError(
                f"{spec} no longer gives a way to run {name!r}; index it again",
                model_text=f"there is no way to run {name!r} any more; go on without it, or use another tool",
            )
        return tool


def _open(spec: str, server: str) -> Source:
    source = open_source(spec)
    from toolsearch.catalog.sources.mcp import McpSource
    from toolsearch.catalog.sources.prefixed import PrefixedLiveSource

    prefix, plain = split_prefix(spec)
    if isinstance(source, PrefixedLiveSource) and isinstance(source.source, McpSource):
        source.close()
        own = server.removeprefix(f"{prefix}{SEPARATOR}")
        return PrefixedLiveSource(McpSource(Path(plain), only=[own]), prefix)
    if isinstance(source, McpSource):
        source.close()
        return McpSource(Path(spec), only=[server])
    return source


@dataclass(frozen=True, slots=True)
class ReopenedCallback:
    """Stands in for the callback of a stored tool."""

    sources: ReopenedSources
    spec: str
    server: str
    name: str

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        tool = await run_function(self.sources.find, self.spec, self.server, self.name)
        value = await run_callback(cast("ToolCallback", tool.callback), arguments, context)
        converter = tool.metadata.result_converter  # code, so it was not stored with the rest of the metadata
        return value if converter is None else converted_by(converter, value, tool.callback)
