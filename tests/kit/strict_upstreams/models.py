"""What each model takes. Unknown model names are refused with 404, as the providers do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Binding = Literal["none", "record", "enforce"]


@dataclass(frozen=True)
class ClaudeTraits:
    """Rules of one Claude model on the Messages wire."""

    forced_choice: bool = True
    binding: Binding = "none"
    tool_changes: bool = False
    system_messages: bool = False
    sampling: bool = False
    manual_thinking: bool = False
    adaptive_thinking: bool = True
    prefill: bool = False
    thinks_by_default: bool = False
    may_disable_thinking: bool = True
    between_tools: bool = False


@dataclass(frozen=True)
class GptTraits:
    """Rules of one OpenAI model on the Chat and Responses wires."""

    reasoning: bool = True
    chat_tools_with_reasoning: bool = True
    reasons_by_default: bool = True
    chat: bool = True
    tool_search: bool = False
    additional_tools: bool = False


_OLD = ClaudeTraits(sampling=True, manual_thinking=True, adaptive_thinking=False, prefill=True)
_46 = replace(_OLD, adaptive_thinking=True, prefill=False)
_47 = ClaudeTraits()
_48 = ClaudeTraits(tool_changes=True, system_messages=True)
_5 = replace(_48, thinks_by_default=True)
_55 = replace(_5, forced_choice=False, binding="enforce")

CLAUDE: dict[str, ClaudeTraits] = {
    "claude-haiku-4-5": _OLD,
    "claude-haiku-4-5-20251001": _OLD,
    "claude-sonnet-4-5": _OLD,
    "claude-sonnet-4-5-20250929": _OLD,
    "claude-opus-4-5": _OLD,
    "claude-opus-4-5-20251101": _OLD,
    "claude-sonnet-4-6": _46,
    "claude-opus-4-6": _46,
    "claude-opus-4-7": _47,
    "claude-opus-4-8": _48,
    "claude-opus-5": _5,
    "claude-fable-5": _5,
    "claude-mythos-5": _5,
    "claude-sonnet-5": replace(_5, tool_changes=False, system_messages=False),
    "claude-fable-5-1": _55,
    "claude-fable-5-2": _55,
    "claude-opus-5-5": replace(_55, may_disable_thinking=False),
    "claude-mythos-5-1": replace(_55, binding="record"),
    "claude-mythos-5-2": replace(_55, binding="record"),
    "claude-sonnet-5-5": replace(
        _55, may_disable_thinking=False, between_tools=True, tool_changes=False, system_messages=False
    ),
    "claude-haiku-5-5": replace(_55, forced_choice=True, tool_changes=False, system_messages=False),
}

# additional_tools: live requests by the authors of pydantic-ai 2.68, 13 models from gpt-4o-mini to gpt-5.6
_4O = GptTraits(reasoning=False, reasons_by_default=False)
_PLAIN = replace(_4O, additional_tools=True)
_R5 = GptTraits(additional_tools=True)
_R54 = replace(_R5, chat_tools_with_reasoning=False, reasons_by_default=False, tool_search=True)
_R56 = replace(_R54, reasons_by_default=True)

GPT: dict[str, GptTraits] = {
    "gpt-4o": _4O,
    "gpt-4o-mini": _PLAIN,
    "gpt-4.1": _PLAIN,
    "gpt-4.1-mini": _PLAIN,
    "gpt-5": _R5,
    "gpt-5-mini": _R5,
    "gpt-5.1": replace(_R5, reasons_by_default=False),
    "gpt-5.2": replace(_R5, reasons_by_default=False),
    "gpt-5.4": _R54,
    "gpt-5.4-mini": _R54,
    "gpt-5.5": replace(_R54, reasons_by_default=True),
    "gpt-5.6": _R56,
    "gpt-5.6-sol": _R56,
    "gpt-5.6-terra": _R56,
    "gpt-5.6-luna": _R56,
    "gpt-6-sol": _R56,
    "gpt-6-astra": _R56,
    "gpt-6.1-sol": _R56,
    "gpt-6.2-sol": _R56,
}

KNOWN_BETAS = {
    "computer-use-2025-01-24",
    "output-128k-2025-02-19",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "interleaved-thinking-2025-05-14",
    "code-execution-2025-05-22",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "model-context-window-exceeded-2025-08-26",
    "fast-mode-2026-02-01",
    "output-300k-2026-03-24",
    "advisor-tool-2026-03-01",
    "server-side-fallback-2026-06-01",
    "server-side-fallback-2026-07-01",
    "fallback-credit-2026-06-01",
    "fallback-credit-2026-07-01",
    "mid-conversation-tool-changes-2026-07-01",
    "compact-2026-01-12",
    "structured-outputs-2025-11-13",
    "task-budgets-2026-03-13",
    "thinking-display-updates-2026-08-18",
    "mid-conversation-output-config-2026-07-01",
    "thinking-binding-controls-2026-08-01",
    "mid-conversation-system-clear-at-2026-08-21",
    "compact-2026-09-04",
    "inline-tools-2026-09-15",
    "mcp-client-2026-09-15",
    "thinking-token-count-2026-05-13",
    "message-threads-2026-08-12",
    "prompt-caching-2024-07-31",
    "pdfs-2024-09-25",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "files-api-2025-04-14",
    "extended-cache-ttl-2025-04-11",
    "skills-2025-10-02",
    "cache-diagnosis-2026-04-07",
    "message-batches-2024-09-24",
    "fine-grained-tool-streaming-2025-05-14",
    "advanced-tool-use-2025-11-20",
    "tool-search-tool-2025-10-19",
    "claude-code-20250219",
    "oauth-2025-04-20",
    "effort-2025-11-24",
    "prompt-caching-scope-2026-01-05",
    "mid-conversation-system-2026-04-07",
}
