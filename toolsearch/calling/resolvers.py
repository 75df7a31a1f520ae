"""Looks up a call's tool: among the tools that the request attaches, and then by resolvers.

A model may call only the attached tools, unless a setting allows more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from toolsearch.errors import BadToolError, UnknownToolError
from toolsearch.option_values import name_list
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.naming import near_names
from toolsearch.tools.providers import tools_by_name

ENTRY_POINT_GROUP = "toolsearch.tools"


class ToolCallbackResolver(Protocol):
    """Finds tools by name. Safe to share between threads; the same name gives the same tool while nothing has changed.

    *name* may come from a model's text: implementations treat it as data, and never import or open anything by it.
    """

    def resolve(self, name: str) -> Tool | None:
        """Return the tool of exactly that name, or None. Raises ToolSearchError if there is one that cannot be made."""
        ...


class StaticToolCallbackResolver:
    """A fixed set of tools. Raises DuplicateToolError if two of them have the same name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tools_by_name(tools)

    def resolve(self, name: str) -> Tool | None:
        return self._tools.get(name)


class DelegatingToolCallbackResolver:
    """Asks one resolver after the other; the first that knows the name answers."""

    def __init__(self, resolvers: Sequence[ToolCallbackResolver]) -> None:
        self._resolvers = tuple(resolvers)

    def resolve(self, name: str) -> Tool | None:
        found = (resolver.resolve(name) for resolver in self._resolvers)
        return next((tool for tool in found if tool is not None), None)


class ImportPathResolver:
    """Finds functions and tools by import path (``package.module:function``) or by the name of an entry point.

    paths  the import paths that may be resolved, and no others: a name that is not listed here is never imported.
           Such a tool keeps its own name
    group  the entry points that installed packages offer, each under its own name; None for none of them

    Nothing is imported before it is asked for. A path takes precedence over an entry point.
    """

    def __init__(self, paths: Iterable[str] = (), *, group: str | None = ENTRY_POINT_GROUP) -> None:
        self._unread_group = group
        self._listed = {path: _at(path) for path in name_list(paths, "paths")}
        self._loaded: dict[str, Tool] = {}
        self._lock = threading.RLock()  # reentrant: a module that is being imported may resolve tools itself

    def resolve(self, name: str) -> Tool | None:
        """Raises BadToolError if the object cannot be imported, or is neither a tool nor a function."""
        with self._lock:
            if name not in self._loaded:
                place = self._place(name)
                if place is None:
                    return None
                self._loaded[name] = _load(place)
            return self._loaded[name]

    def _place(self, name: str) -> EntryPoint | None:
        if name not in self._listed and self._unread_group is not None:
            self._listed = {found.name: found for found in entry_points(group=self._unread_group)} | self._listed
            self._unread_group = None
        return self._listed.get(name)


def _at(path: str) -> EntryPoint:
    """An entry point without a name of its own, so that its tool keeps its own name."""
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise BadToolError(f"{path!r} is no import path; write it as 'package.module:function'")
    return EntryPoint(name="", value=path, group="")


def _load(place: EntryPoint) -> Tool:
    try:
        found: Any = place.load()
    except Exception as error:
        raise BadToolError(f"the tool at {place.value!r} cannot be imported: {error}") from error
    if isinstance(found, Tool):
        return replace(found, definition=replace(found.definition, name=place.name)) if place.name else found
    if not callable(found):
        raise BadToolError(f"{place.value!r} is a {type(found).__name__}, neither a Tool nor a function")
    return tool_from_function(found, name=place.name or None)


class AttachedTools:
    """A `ToolScope` over a fixed list of tools, for use without a search.

    resolver  looks up names that are not attached
    fallback  whether to ask the resolver; False by default, so that a model cannot reach other tools by
              inventing names

    Raises DuplicateToolError if two tools have the same name. The same tool given twice counts once.
    """

    def __init__(
        self, tools: Iterable[Tool], resolver: ToolCallbackResolver | None = None, *, fallback: bool = False
    ) -> None:
        self._tools = tools_by_name(tools)
        self._resolver = resolver if fallback else None

    @property
    def definitions(self) -> list[ToolDefinition]:
        """The definitions of the attached tools, in the order given; tools that only a resolver knows are not
        listed.
        """
        return [tool.definition for tool in self._tools.values()]

    def resolve(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None and self._resolver is not None:
            tool = self._resolver.resolve(name)
        if tool is None:
            raise UnknownToolError(name, near=near_names(name, self._tools))
        return tool

    def begin_call(self, name: str) -> None:
        """Nothing is ever evicted here."""

    def end_call(self, name: str) -> None:
        """Nothing is ever evicted here."""
