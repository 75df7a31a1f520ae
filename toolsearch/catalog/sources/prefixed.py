"""A source whose tools are named with a prefix, so that they do not collide with those of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolsearch.catalog.source import LiveSource, LoadReport, Source
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import SEPARATOR, namespaced


class PrefixedSource:
    """``forecast`` becomes ``<prefix>__forecast``, and ``mail__send`` of a server ``<prefix>__mail__send``."""

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

    def _prefixed(self, report: LoadReport) -> LoadReport:
        purposes = {self._server(server): purpose for server, purpose in report.purposes.items()}
        return replace(report, tools=tuple(map(self._named, report.tools)), purposes=purposes)

    def _named(self, tool: Tool) -> Tool:
        definition = tool.definition
        named = replace(definition, name=namespaced(self._prefix, tool.name), server=self._server(definition.server))
        return replace(tool, definition=named)

    def _server(self, server: str) -> str:
        return f"{self._prefix}{SEPARATOR}{server}" if server else self._prefix


class PrefixedLiveSource(PrefixedSource):
    """The same of a source whose tools change."""

    def __init__(self, source: LiveSource, prefix: str) -> None:
        super().__init__(source, prefix)
        self._live = source

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        self._live.follow(lambda report: changed(self._prefixed(report)))
