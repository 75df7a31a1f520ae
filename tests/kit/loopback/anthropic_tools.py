"""The tools of a request to Anthropic's Messages: in its list, deferred or not, and as its messages change them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tests.kit.loopback.checks import objects, only, schema, tool_name, unique
from tests.kit.loopback.memory import canonical
from tests.kit.loopback.models import takes_forced_choice, takes_tool_changes
from tests.kit.loopback.script import RefusedError

CHANGES = ("tool_addition", "tool_removal")
BY_REFERENCE = "mid-conversation-tool-changes-2026-07-01"
BY_VALUE = "inline-tools-2026-09-15"  # covers references, too

_TOOL = ["description", "type", "cache_control", "defer_loading", "strict", "input_examples"]


class Tools:
    """What a request says of tools, followed from its list through its messages.

    declared   the list, by name
    defined    what messages have defined so far, by name
    available  what the model may call at this place
    """

    def __init__(self, headers: Mapping[str, str], body: dict[str, Any]) -> None:
        self._betas = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
        self._model = body["model"]
        self.declared = _declared(body)
        self.defined: dict[str, dict[str, Any]] = {}
        self.available = {name for name, tool in self.declared.items() if not tool.get("defer_loading")}
        _check_choice(body, self.declared)

    def refer(self, place: str, name: str) -> None:
        """A result loads a deferred tool."""
        if not self.declared.get(name, {}).get("defer_loading"):
            reason = f"Tool reference {name!r} has no corresponding tool definition with defer_loading=true"
            raise RefusedError(f"{place}: {reason}", code="tool_reference_unresolved")
        self.available.add(name)

    def change(self, place: str, blocks: Sequence[dict[str, Any]]) -> None:
        """A system message adds and withdraws tools. One name is in it once: a definition that has changed is withdrawn
        by one request and comes back with a later one.
        """
        changed = [self._change(f"{place}.content[{number}]", block) for number, block in enumerate(blocks)]
        unique(f"{place}: tool changes", [name for name in changed if name])

    def _change(self, place: str, block: dict[str, Any]) -> str:
        if block["type"] not in CHANGES:
            return ""
        tool = block["tool"]
        kind = tool.get("type") if isinstance(tool, dict) else None
        self._require_beta(place, block["type"], kind)
        if block["type"] == "tool_removal":
            return self._withdraw(place, tool)
        return self._define(place, tool) if kind == "tool_definition" else self._add(place, tool)

    def _require_beta(self, place: str, kind: str, tool: object) -> None:
        if not takes_tool_changes(self._model):
            raise RefusedError(f"{place}: tool_addition/tool_removal is not supported on this model")
        needed = [BY_VALUE] if tool == "tool_definition" else [BY_VALUE, BY_REFERENCE]
        if not self._betas.intersection(needed):
            raise RefusedError(f"{place}: {kind} requires the beta header {' or '.join(needed)}")

    def _withdraw(self, place: str, tool: object) -> str:
        name = self._referred(place, tool)
        self.available.discard(name)
        return name

    def _add(self, place: str, tool: object) -> str:
        name = self._referred(place, tool)
        if name in self.defined and BY_VALUE not in self._betas:
            raise RefusedError(f"{place}: to refer to a tool defined in messages requires the beta header {BY_VALUE}")
        self.available.add(name)
        return name

    def _define(self, place: str, tool: object) -> str:
        definition = only(place, tool, (), required=["type", "definition"])["definition"]
        _check_tool(f"{place}.definition", definition)
        name: str = definition["name"]
        if name in self.available:
            raise RefusedError(f"{place}: Tool names must be unique; {name!r} is available already")
        self.defined[name] = definition
        self.available.add(name)
        return name

    def _referred(self, place: str, tool: object) -> str:
        fields = only(place, tool, (), required=["type", "name"])
        if fields["type"] != "tool_reference":
            raise RefusedError(f"{place}.type: {fields['type']!r} is not tool_reference")
        if fields["name"] not in self.declared and fields["name"] not in self.defined:
            raise RefusedError(f"{place}: Tool {fields['name']!r} not found in `tools` or in earlier messages")
        return str(fields["name"])


def _declared(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if "tools" not in body:
        if "tool_choice" in body:
            raise RefusedError("tool_choice may only be specified while providing tools")
        return {}
    return _listed(canonical(body["tools"]))


@cache  # a long conversation sends the same thousands of tools with each request
def _listed(text: str) -> dict[str, dict[str, Any]]:
    tools = [_check_tool(place, tool) for place, tool in objects("tools", json.loads(text))]
    unique("tools: Tool names", [tool["name"] for tool in tools])
    if all(tool.get("defer_loading") for tool in tools):
        raise RefusedError("tools: At least one tool must have defer_loading=false. All tools cannot be deferred.")
    return {tool["name"]: tool for tool in tools}


def _check_tool(place: str, value: object) -> dict[str, Any]:
    tool = only(place, value, _TOOL, required=["name", "input_schema"])
    tool_name(f"{place}.name", tool["name"])
    schema(f"{place}.input_schema", tool["input_schema"], strict=tool.get("strict") is True)
    if tool.get("defer_loading") and tool.get("cache_control"):
        raise RefusedError(f"{place}: tools with defer_loading cannot have cache_control")
    return tool


def _check_choice(body: dict[str, Any], declared: Mapping[str, Any]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    only("tool_choice", choice, ["name", "disable_parallel_tool_use"], required=["type"])
    if choice["type"] not in ("auto", "any", "tool", "none"):
        raise RefusedError(f"tool_choice.type: {choice['type']!r} is not one of auto, any, tool, none")
    if choice["type"] == "tool" and choice.get("name") not in declared:
        raise RefusedError(f"Tool {choice.get('name')!r} not found in provided tools")
    if choice["type"] not in ("any", "tool"):
        return
    if not takes_forced_choice(body["model"]):
        raise RefusedError('tool_choice: type "tool" and "any" are not supported for this model.')
    if (body.get("thinking") or {}).get("type") == "enabled":
        raise RefusedError("Thinking may not be enabled when tool_choice forces tool use.")
