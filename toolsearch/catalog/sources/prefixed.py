"""A source whose tools are named with a prefix, so that they do not collide with those of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from toolsearch.catalog.source import LiveSource, LoadReport, Source
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import SEPARATOR, all_namespaced, given_name, title_with_name


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
    """The same of a source whose tools change."""

    def __init__(self, source: LiveSource, prefix: str) -> None:
        super().__init__(source, prefix)
        self._live = source

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        self._live.follow(lambda report: changed(self._prefixed(report)))


def _own_name(tool: Tool) -> str:
    return given_name(tool.definition) or tool.definition.local_name
