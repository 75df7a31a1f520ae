"""What the two OpenAI wires share: tool lists, tool choices, reasoning parameters, turn building."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .brain import PastCall, PastResult, Turn, VisibleTool
from .core import Json, Refusal
from .models import GptTraits
from .toolrules import gpt_array, gpt_name, gpt_schema, require_fields

MOST_TOOLS = 128


def check_auth(headers: Mapping[str, str]) -> None:
    """A bearer token must be there."""
    if not headers.get("authorization", "").lower().startswith("bearer "):
        raise Refusal(
            "auth",
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            status=401,
        )


def traits_of(body: Any, models: Mapping[str, GptTraits]) -> GptTraits:
    """The model's rules, or 404."""
    if not isinstance(body, dict):
        raise Refusal("shape", "We could not parse the JSON body of your request.", code=None)
    model = body.get("model")
    if model is None:
        raise Refusal(
            "missing_field", "Missing required parameter: 'model'.", param="model", code="missing_required_parameter"
        )
    if not isinstance(model, str) or model not in models:
        raise Refusal(
            "model",
            f"The model `{model}` does not exist or you do not have access to it.",
            status=404,
            param="model",
            code="model_not_found",
        )
    return models[model]


def unknown_body(body: Json, known: frozenset[str]) -> None:
    """Refuse parameters the API does not know."""
    for key in body:
        if key not in known:
            raise Refusal("unknown_field", f"Unknown parameter: '{key}'.", param=key, code="unknown_parameter")
    if not isinstance(body.get("stream") or False, bool):
        raise Refusal("shape", "Invalid type for 'stream': expected a boolean.", param="stream", code="invalid_type")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refusal(
            "stream_options",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )


def check_function(function: Json, where: str, strict_default: bool = False) -> None:
    """Name, description and schema of a function."""
    gpt_name(function.get("name"), f"{where}.name")
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        raise Refusal(
            "shape",
            f"Invalid type for '{where}.description': expected a string.",
            param=f"{where}.description",
            code="invalid_type",
        )
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise Refusal(
            "shape",
            f"Invalid type for '{where}.strict': expected a boolean.",
            param=f"{where}.strict",
            code="invalid_type",
        )
    gpt_schema(
        str(function["name"]),
        function.get("parameters"),
        f"{where}.parameters",
        strict_default if strict is None else strict,
    )


def tools_list(value: Any, where: str = "tools", least: int = 0) -> list[Any]:
    """The list of tools within the size limit."""
    if value is None:
        return []
    return gpt_array(
        value, where, least, MOST_TOOLS, "too_many_tools" if isinstance(value, list) and value else "array"
    )


def duplicate(name: str, where: str) -> Refusal:
    """Two tools of one name."""
    return Refusal(
        "tool_unique",
        f"Duplicate tool name '{name}' found in '{where}'. Tool names must be unique.",
        param=where,
        code="invalid_value",
    )


def unlisted(name: str) -> Refusal:
    """A tool choice that names a tool which is not there."""
    return Refusal(
        "choice_unlisted",
        f"Tool choice '{name}' not found in 'tools' parameter.",
        param="tool_choice",
        code="invalid_value",
    )


def effort_of(value: Any, traits: GptTraits, where: str) -> bool:
    """Whether the model reasons, given the effort asked for."""
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    if value is None:
        return traits.reasoning and traits.reasons_by_default
    if value not in efforts:
        raise Refusal(
            "effort",
            f"Invalid value: '{value}'. Supported values are: {', '.join(repr(one) for one in efforts)}.",
            param=where,
            code="invalid_value",
        )
    if not traits.reasoning:
        raise Refusal(
            "effort",
            f"Unsupported parameter: '{where}' is not supported with this model.",
            param=where,
            code="unsupported_parameter",
        )
    return bool(value != "none")


def sampling(body: Json, reasoning: bool) -> None:
    """Reasoning models take no sampling parameters."""
    for key in ("temperature", "top_p"):
        if reasoning and body.get(key) not in (None, 1):
            raise Refusal(
                "sampling",
                f"Unsupported parameter: '{key}' is not supported with this model.",
                param=key,
                code="unsupported_parameter",
            )


def parsed(arguments: Any) -> Any:
    """Arguments as a value where they parse, else as they are."""
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


class Turns:
    """Builds the wire-neutral conversation."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def _at(self, role: Any) -> Turn:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        return self.turns[-1]

    def text(self, role: str, text: str) -> None:
        """Add text of a role."""
        turn = self._at({"developer": "system"}.get(role, role))
        if role == "user" and turn.results:
            self.turns.append(Turn("user"))
            turn = self.turns[-1]
        turn.text = f"{turn.text}\n{text}" if turn.text else text

    def call(self, name: str, tool: str, arguments: Any, namespace: str | None = None) -> None:
        """Add a call."""
        self._at("assistant").calls.append(PastCall(name, tool, arguments, namespace))

    def result(self, name: str, text: str, references: tuple[str, ...] = ()) -> None:
        """Add a result."""
        self._at("user").results.append(PastResult(name, text, references))


def joined(content: Any) -> str:
    """The text of a string or of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict) and "text" in part)
    return ""


def limit_to(tools: list[VisibleTool], names: set[str] | None) -> list[VisibleTool]:
    """Make every tool outside `names` uncallable; None leaves all as they are."""
    if names is None:
        return tools
    return [
        VisibleTool(
            tool.name,
            tool.description,
            tool.parameters,
            tool.kind,
            tool.callable and tool.name in names,
            tool.origin,
            tool.namespace,
        )
        for tool in tools
    ]


__all__ = [
    "MOST_TOOLS",
    "Turns",
    "check_auth",
    "check_function",
    "duplicate",
    "effort_of",
    "joined",
    "limit_to",
    "parsed",
    "require_fields",
    "sampling",
    "tools_list",
    "traits_of",
    "unknown_body",
    "unlisted",
]
