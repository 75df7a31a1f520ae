"""Tools as the people of a gateway want them: off, with other names and descriptions, with arguments of their own.

A tool to which its settings cannot be applied is left out, because without them it could do more than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from toolsearch.access.reach import GlobSet, is_glob
from toolsearch.documents.json_values import as_list, as_object, pointer_step, texts_in
from toolsearch.errors import BadToolError
from toolsearch.gateway.settings import GatewaySettings, ToolSettings
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition, ToolShape
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import did_you_mean, namespaced

_GLOB_SIGNS = frozenset("*?[]!")
_AS_LISTED = ToolSettings()


@dataclass(frozen=True)
class Shapes:
    """The settings of one server's tools, by the server's own names or by globs of these.

    A name goes before a glob, then the glob with more letters, then the first. With *keeps_outputs* false, no tool has
    an output schema, because results are changed.
    """

    tools: Mapping[str, ToolSettings]
    keeps_outputs: bool = True

    def shaped(self, tools: Iterable[Tool]) -> tuple[list[Tool], list[Refusal]]:
        """*tools* of one listing in their order, without those that are off, and a refusal for each that is left out.

        Of two tools of one name, the one that the settings name so is kept.
        """
        if not self.tools and self.keeps_outputs:
            return list(tools), []
        listed = {tool.remote_name: tool for tool in tools}
        kept: list[Tool] = []
        refused = [_unlisted(name, listed) for name in self.tools if not is_glob(name) and name not in listed]
        for tool in listed.values():
            wanted = self.of(tool.remote_name)
            try:
                kept += [self._shaped(tool, wanted)] if wanted.enabled else []
            except BadToolError as error:
                refused.append(Refusal(tool.name, tool.source, str(error)))
        by_name: dict[str, Tool] = {}
        for tool in sorted(kept, key=lambda tool: self.of(tool.remote_name).name is None):
            first = by_name.setdefault(tool.name, tool)
            if first is not tool:
                reason = f"the settings call {first.remote_name!r} so; give one of the two another name"
                refused.append(Refusal(tool.name, tool.source, reason))
        return [tool for tool in kept if by_name[tool.name] is tool], refused

    def of(self, remote_name: str) -> ToolSettings:
        """The settings of the tool that its server calls *remote_name*."""
        if remote_name in self.tools:
            return self.tools[remote_name]
        return next((self.tools[glob] for glob, matcher in self._globs if matcher.match(remote_name)), _AS_LISTED)

    @cached_property
    def _globs(self) -> list[tuple[str, GlobSet]]:
        globs = sorted(filter(is_glob, self.tools), key=lambda glob: -sum(sign not in _GLOB_SIGNS for sign in glob))
        return [(glob, GlobSet([glob])) for glob in globs]

    def _shaped(self, tool: Tool, wanted: ToolSettings) -> Tool:
        """Raises BadToolError if *wanted* cannot be applied."""
        if (wanted == _AS_LISTED and self.keeps_outputs) or tool.origin is None:
            return tool
        definition = _worded(_without(tool.definition, wanted), wanted)
        if wanted.result or not self.keeps_outputs:
            definition = replace(definition, output_schema=None)
        hidden = frozenset(wanted.hidden).difference(wanted.arguments)
        shape = ToolShape(tool.name, wanted.arguments, hidden, wanted.result.get("cut"), wanted.pick)
        return replace(tool, definition=definition, origin=replace(tool.origin, shape=shape))


def shapes_of(settings: GatewaySettings) -> Callable[[str], Shapes]:
    """Give the settings of a server's tools by the server's name."""

    def of(server: str) -> Shapes:
        return Shapes(settings.of_server(server).tools, keeps_outputs=settings.treatment_of(server) != "mask")

    return of


def _unlisted(name: str, listed: Mapping[str, Tool]) -> Refusal:
    server = next((tool.definition.server for tool in listed.values()), "")
    reason = f"the settings name {name!r}, which its server does not list{did_you_mean(name, listed)}"
    return Refusal(namespaced(server, name), server, reason)


def _worded(definition: ToolDefinition, wanted: ToolSettings) -> ToolDefinition:
    """*definition* in the words of *wanted*. Its title goes with its name, since it says the same to people."""
    if wanted.description is not None:
        definition = replace(definition, description=wanted.description)
    if wanted.name is None:
        return definition
    name = namespaced(definition.server, wanted.name)
    if not name.endswith(f"__{wanted.name}"):
        raise BadToolError(f"its name in the settings, {wanted.name!r}, is too long behind that of its server")
    annotations = {key: value for key, value in definition.annotations.items() if key != "title"}
    return replace(definition, name=name, title="", annotations=annotations)


# Keywords that may speak of arguments that are gone. Models can do without: the server checks the arguments, too.
_OF_SEVERAL = frozenset(
    {
        "$ref", "allOf", "anyOf", "default", "dependencies", "dependentRequired", "dependentSchemas", "else",
        "examples", "if", "maxProperties", "minProperties", "not", "oneOf", "propertyNames", "then",
        "unevaluatedProperties",
    }
)  # fmt: skip


def _without(definition: ToolDefinition, wanted: ToolSettings) -> ToolDefinition:
    """*definition* without the arguments that callers neither see nor send."""
    gone = {*wanted.arguments, *wanted.hidden}
    if not gone:
        return definition
    schema = definition.input_schema
    properties, required = as_object(schema.get("properties")) or {}, as_list(schema.get("required")) or []
    if missing := gone.difference(properties):
        raise BadToolError(f"it has no argument {min(missing)!r}, which the settings fix or hide")
    if needed := gone.difference(wanted.arguments).intersection(required):
        raise BadToolError(f"it needs the argument {min(needed)!r}, so the settings cannot hide it without a value")
    kept = {key: value for key, value in schema.items() if key not in {*_OF_SEVERAL, "required"}}
    kept["properties"] = {name: value for name, value in properties.items() if name not in gone}
    if left := [name for name in required if name not in gone]:
        kept["required"] = left
    return replace(definition, input_schema=_without_unused(kept))


def _without_unused(schema: JsonObject) -> JsonObject:
    """*schema* without the definitions that nothing in it refers to."""
    parts = {
        f"#/{key}/{pointer_step(name)}": (key, name, part)
        for key in _DEFINITIONS
        for name, part in (as_object(schema.get(key)) or {}).items()
    }
    kept: dict[str, Json] = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    waiting, used = list(texts_in(kept)), set[str]()
    while waiting:
        pointer = "/".join(waiting.pop().split("/")[:3])
        if pointer in parts and pointer not in used:
            used.add(pointer)
            waiting += texts_in(parts[pointer][2])
    for pointer, (key, name, part) in parts.items():
        if pointer in used:
            kept.setdefault(key, {})[name] = part
    return kept


_DEFINITIONS = ("$defs", "definitions")
