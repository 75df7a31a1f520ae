"""The tools that one request attaches: a model may call these and no others, unless a setting allows more."""

from __future__ import annotations

from collections.abc import Iterable

from toolsearch.calling.resolvers import ToolCallbackResolver
from toolsearch.errors import UnknownToolError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.naming import near_names
from toolsearch.tools.providers import tools_by_name


class AttachedTools:
    """A `ToolScope` over a fixed list of tools, for use without a search.

    resolver  where else a called name may be looked up
    fallback  whether it is: False by default, as a model that makes up a name must not reach a tool that the
              application did not attach

    Raises DuplicateToolError if two tools want one name. The same tool given twice counts once.
    """

    def __init__(
        self, tools: Iterable[Tool], resolver: ToolCallbackResolver | None = None, *, fallback: bool = False
    ) -> None:
        self._tools = tools_by_name(tools)
        self._resolver = resolver if fallback else None

    @property
    def definitions(self) -> list[ToolDefinition]:
        """Those of the attached tools, in the order given; what a resolver knows is not listed."""
        return [tool.definition for tool in self._tools.values()]

    def resolve(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None and self._resolver is not None:
            tool = self._resolver.resolve(name)
        if tool is None:
            raise UnknownToolError(name, near=near_names(name, self._tools))
        return tool

    def begin_call(self, name: str) -> None:
        """Nothing here is ever evicted."""

    def end_call(self, name: str) -> None:
        """Nothing here is ever evicted."""
