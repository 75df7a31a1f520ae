"""The judges on one tool alone, in a request that is right but for it."""

from collections.abc import Mapping
from typing import Any

from tests.kit.strict import anthropic_messages, mcp_tools, openai_chat, openai_responses

_ASKED = [{"role": "user", "content": "Do it."}]


def problems_of_tool(wire_format: str, entry: Mapping[str, Any]) -> list[str]:
    """Every reason for which a request that lists only *entry*, in this wire's form, would be refused."""
    match wire_format:
        case "anthropic":
            request = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": _ASKED, "tools": [entry]}
            return anthropic_messages.problems(request)
        case "openai":
            return openai_chat.problems({"model": "gpt-4.1", "messages": _ASKED, "tools": [entry]})
        case "openai-responses":
            return openai_responses.problems({"model": "gpt-4.1", "input": _ASKED, "tools": [entry]})
        case "mcp":
            return mcp_tools.problems({"tools": [entry]})
        case _:
            raise ValueError(f"no judge of {wire_format!r}")
