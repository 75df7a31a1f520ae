"""Tools as the people of a gateway want them: off, with other names and descriptions, with arguments of their own, and
with a part of their results.

A tool to which its settings cannot be applied is left out, because without them it could do more than it should. For
the same reason, a call or a result that does not fit them is not passed on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from toolsearch.access.claims import claim_of
from toolsearch.access.reach import GlobSet, is_glob
from toolsearch.calling.delivery import capped
from toolsearch.documents.json_values import (
    as_list,
    as_object,
    is_list,
    is_object,
    name_of_step,
    pointer_step,
    texts_in,
)
from toolsearch.errors import BadArgumentsError, BadToolError, CallDeniedError, ToolExecutionError
from toolsearch.gateway.settings import GatewaySettings, ToolSettings
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition, ToolOverride
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import did_you_mean, namespaced
from toolsearch.tools.results import ToolOutput, binary_data, block_text, text_block
from toolsearch.wire.mcp.requests import asks_for_input, read_output, with_output

_GLOB_SIGNS = frozenset("*?[]!")
_AS_LISTED = ToolSettings()


@dataclass(frozen=True)
class Overrides:
    """The settings of one server's tools, by the server's own names or by globs of these.

    A name goes before a glob, then the glob with more letters, then the first. With *keeps_outputs* false, no tool has
    an output schema, because results are changed.
    """

    tools: Mapping[str, ToolSettings]
    keeps_outputs: bool = True

    def applied_to(self, tools: Iterable[Tool]) -> tuple[list[Tool], list[Refusal]]:
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
                kept += [self._overridden(tool, wanted)] if wanted.enabled else []
            except BadToolError as error:
                refused.append(Refusal(tool.name, tool.source, str(error)))
        by_name: dict[str, Tool] = {}
        for tool in sorted(kept, key=lambda tool: self.of(tool.remote_name).name is None):
            first = by_name.setdefault(tool.name, tool)
            if first is not tool:
                reason = f"the settings give this name to {first.remote_name!r}; rename one of the two"
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

    def _overridden(self, tool: Tool, wanted: ToolSettings) -> Tool:
        """Raises BadToolError if *wanted* cannot be applied."""
        if (wanted == _AS_LISTED and self.keeps_outputs) or tool.origin is None:
            return tool
        definition = _worded(_without(tool.definition, wanted), wanted)
        if wanted.result or not self.keeps_outputs:
            definition = replace(definition, output_schema=None)
        override = ToolOverride(
            tool.name,
            fixed=wanted.arguments,
            hidden=frozenset(wanted.hidden).difference(wanted.arguments),
            cut=wanted.result.get("cut"),
            pick=tuple(wanted.result.get("pick", ())),
        )
        return replace(tool, definition=definition, origin=replace(tool.origin, override=override))


def overrides_of(settings: GatewaySettings) -> Callable[[str], Overrides]:
    """Give the settings of a server's tools by the server's name."""

    def of(server: str) -> Overrides:
        return Overrides(settings.of_server(server).tools, keeps_outputs=settings.treatment_of(server) != "mask")

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
        raise BadToolError(
            f"its name in the settings, {wanted.name!r}, is too long together with the name of its server"
        )
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


def sent_arguments(override: ToolOverride, arguments: JsonObject, claims: JsonObject) -> JsonObject:
    """*arguments* of a caller with those that are fixed; *claims* are those of the caller's token.

    Raises BadArgumentsError for an argument that no caller may send, and CallDeniedError for a claim that is missing or
    is no text and no whole number.
    """
    if taken := sorted({*override.fixed, *override.hidden}.intersection(arguments)):
        raise BadArgumentsError(f"the tool takes no argument {taken[0]!r}; leave it out")
    return {**arguments, **_filled(override.fixed, claims)}


def _filled(value: Json, claims: JsonObject) -> Json:
    if (name := claim_of(value)) is not None:
        claim = claims.get(name)
        if not isinstance(claim, str | int) or isinstance(claim, bool):  # an object could mean something to the server
            raise CallDeniedError(
                f"the tool needs the claim {name!r} of your token as a text or a whole number; ask the token's issuer"
            )
        return claim
    if is_object(value):
        return {key: _filled(each, claims) for key, each in value.items()}
    return [_filled(each, claims) for each in value] if is_list(value) else value


def shown_result(override: ToolOverride, raw: JsonObject, counter: TokenCounter) -> JsonObject:
    """What is passed on of *raw*, the answer of the tool's server. Raises ToolExecutionError if that is nothing."""
    if asks_for_input(raw):
        return raw
    output = read_output(raw)
    shown = _picked(override.pick, output) if override.pick else output
    if override.cut is not None:
        shown = capped(_with_text(shown), _characters(shown, override.cut, counter))
    return raw if shown == output else with_output(raw, shown)


_NOTHING: Final = object()
_EACH: Final = "*"  # in a pointer: every item of a list


def _picked(pointers: Sequence[str], output: ToolOutput) -> ToolOutput:
    """The parts at *pointers* of the structured content, or else of each text that is JSON."""
    wanted = _tree(pointers)
    structured = _part(output.structured, wanted)
    if structured is not _NOTHING:
        return ToolOutput((text_block(_written(structured)),), structured, is_error=output.is_error)
    parts = (_part(_parsed(block_text(block) or ""), wanted) for block in output.content)
    texts = tuple(text_block(_written(part)) for part in parts if part is not _NOTHING)
    if not texts:
        raise ToolExecutionError(
            f"the tool {'failed' if output.is_error else 'ran'}, but its answer has none of the parts that the "
            f"settings pass on: {', '.join(pointers)}"
        )
    return ToolOutput(texts, is_error=output.is_error)


def _tree(pointers: Sequence[str]) -> dict[str, Any]:
    """The steps of *pointers* (RFC 6901), those with a common beginning together; an empty branch means all that is
    there.
    """
    tree: dict[str, Any] = {}
    for pointer in sorted(pointers, key=len, reverse=True):
        *steps, last = map(name_of_step, pointer.split("/")[1:])
        branch = tree
        for step in steps:
            branch = branch.setdefault(step, {})
        branch[last] = {}
    return tree


def _part(value: Json, wanted: Mapping[str, Any]) -> Json:
    """*value* with only what is *wanted* of it, in its own form; `_NOTHING` if it has none of that."""
    if not wanted:
        return value
    if is_object(value):
        found = {key: _part(value[key], branch) for key, branch in wanted.items() if key in value}
        kept = {key: part for key, part in found.items() if part is not _NOTHING}
        return kept or _NOTHING
    if not is_list(value):
        return _NOTHING
    branches = [wanted.get(str(index), wanted.get(_EACH)) for index in range(len(value))]
    parts = [_part(each, branch) for each, branch in zip(value, branches, strict=True) if branch is not None]
    left = [part for part in parts if part is not _NOTHING]
    return left if left or (not value and _EACH in wanted) else _NOTHING


def _parsed(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _with_text(output: ToolOutput) -> ToolOutput:
    """*output*, which says as text what it would only say as data."""
    is_silent = not output.content and output.structured is not None
    return replace(output, content=(text_block(_written(output.structured)),)) if is_silent else output


_PARTS: Final = (1_024, 32, 1)  # characters that are counted together


def _characters(output: ToolOutput, tokens: int, counter: TokenCounter) -> int:
    """The number of characters of *output* that take at most *tokens*; what stands behind them is not counted."""
    text = "".join(map(_text_of, output.content))
    fitting = _fitting(text, tokens, counter)
    if fitting < len(text):
        return fitting
    return max(fitting, _fitting(_written(output.structured), tokens, counter))


def _text_of(block: JsonObject) -> str:
    text = block_text(block)
    return ("" if binary_data(block) is not None else _written(block)) if text is None else text


def _fitting(text: str, tokens: int, counter: TokenCounter) -> int:
    at = 0
    for size in _PARTS:
        while at < len(text) and (count := counter.count(text[at : at + size])) <= tokens:
            tokens -= count
            at = min(at + size, len(text))
    return at
