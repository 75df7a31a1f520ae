"""Fields every block, item and message may carry, taken from the official SDKs' request types."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# --- Messages ---------------------------------------------------------------------------------------------------

MESSAGES_BODY = _set(
    "model messages max_tokens system tools tool_choice stream temperature top_p top_k stop_sequences metadata "
    "thinking service_tier cache_control output_config inference_geo container"
)
MESSAGES_BETA_BODY = {
    "context_management": ("context-management-2025-06-27", "compact-2026-01-12"),
    "mcp_servers": ("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15"),
    "fallbacks": ("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01"),
    "speed": ("fast-mode-2026-02-01",),
    "diagnostics": ("cache-diagnosis-2026-04-07",),
    "compaction": ("compact-2026-09-04",),
}
COUNT_BODY = _set(
    "model messages system tools tool_choice thinking cache_control output_config context_management mcp_servers speed"
)
MESSAGE = _set("role content")
SYSTEM_MESSAGE = _set("role content clear_at output_config")

BLOCKS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (_set("type text"), _set("cache_control citations")),
    "image": (_set("type source"), _set("cache_control transformations")),
    "document": (_set("type source"), _set("cache_control citations context title")),
    "search_result": (_set("type content source title"), _set("cache_control citations")),
    "thinking": (_set("type thinking signature"), _set("")),
    "redacted_thinking": (_set("type data"), _set("")),
    "tool_use": (_set("type id name input"), _set("cache_control caller toolset_name")),
    "tool_result": (_set("type tool_use_id"), _set("content is_error cache_control toolset_name")),
    "server_tool_use": (_set("type id name input"), _set("cache_control caller")),
    "tool_search_tool_result": (_set("type tool_use_id content"), _set("cache_control")),
    "web_search_tool_result": (_set("type tool_use_id content"), _set("cache_control caller")),
    "web_fetch_tool_result": (_set("type tool_use_id content"), _set("cache_control caller")),
    "code_execution_tool_result": (_set("type tool_use_id content"), _set("cache_control")),
    "bash_code_execution_tool_result": (_set("type tool_use_id content"), _set("cache_control")),
    "text_editor_code_execution_tool_result": (_set("type tool_use_id content"), _set("cache_control")),
    "mcp_tool_use": (_set("type id name input server_name"), _set("cache_control")),
    "mcp_tool_result": (_set("type tool_use_id"), _set("content is_error cache_control")),
    "mcp_tool_listing": (_set("type mcp_server_name tools"), _set("")),
    "container_upload": (_set("type file_id"), _set("cache_control")),
    "compaction": (_set("type"), _set("content encrypted_content signature tool_changes cache_control")),
    "tool_reference": (_set("type tool_name"), _set("cache_control")),
    "tool_addition": (_set("type tool"), _set("cache_control")),
    "tool_removal": (_set("type tool"), _set("cache_control")),
}
USER_BLOCKS = _set("text image document search_result tool_result container_upload")
ASSISTANT_BLOCKS = _set(
    "text thinking redacted_thinking tool_use server_tool_use tool_search_tool_result web_search_tool_result "
    "web_fetch_tool_result code_execution_tool_result bash_code_execution_tool_result "
    "text_editor_code_execution_tool_result mcp_tool_use mcp_tool_result mcp_tool_listing compaction container_upload"
)
SYSTEM_BLOCKS = _set("text tool_addition tool_removal")
RESULT_BLOCKS = _set("text image document search_result tool_reference")
SERVER_RESULTS = frozenset(
    name for name in BLOCKS if name.endswith("_tool_result") and name not in ("tool_result", "mcp_tool_result")
)
SERVER_TOOL_NAMES = _set(
    "advisor web_search web_fetch code_execution bash_code_execution text_editor_code_execution "
    "tool_search_tool_regex tool_search_tool_bm25"
)

CUSTOM_TOOL = _set(
    "name input_schema description type cache_control defer_loading strict allowed_callers eager_input_streaming "
    "input_examples"
)
SEARCH_TOOLS = {
    "tool_search_tool_bm25_20251119": "tool_search_tool_bm25",
    "tool_search_tool_bm25": "tool_search_tool_bm25",
    "tool_search_tool_regex_20251119": "tool_search_tool_regex",
    "tool_search_tool_regex": "tool_search_tool_regex",
}
SEARCH_TOOL = _set("name type cache_control defer_loading strict allowed_callers")
OTHER_TOOL_PREFIXES = (
    "bash_",
    "code_execution_",
    "browser_toolset_",
    "computer_",
    "memory_",
    "text_editor_",
    "web_search_",
    "web_fetch_",
    "advisor_",
)
TOOLSET = _set("mcp_server_name type cache_control configs default_config tools")

# --- Responses --------------------------------------------------------------------------------------------------

RESPONSES_BODY = _set(
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store "
    "stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
ITEMS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "message": (_set("role content"), _set("type id status phase")),
    "function_call": (_set("type call_id name arguments"), _set("id status namespace caller async")),
    "function_call_output": (_set("type call_id output"), _set("id status caller name namespace")),
    "custom_tool_call": (_set("type call_id name input"), _set("id namespace caller status async")),
    "custom_tool_call_output": (_set("type call_id output"), _set("id status caller name namespace")),
    "reasoning": (_set("type id summary"), _set("content encrypted_content status")),
    "tool_search_call": (_set("type arguments"), _set("id call_id execution status created_by")),
    "tool_search_output": (_set("type tools"), _set("id call_id execution status created_by")),
    "additional_tools": (_set("type role tools"), _set("id")),
    "item_reference": (_set("id"), _set("type")),
    "compaction": (_set("type encrypted_content"), _set("id created_by")),
    "configuration_update": (_set("type"), _set("id reasoning text")),
}
OTHER_ITEMS = _set(
    "file_search_call computer_call computer_call_output web_search_call image_generation_call code_interpreter_call "
    "local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output "
    "mcp_list_tools mcp_approval_request mcp_approval_response mcp_call compaction_trigger program program_output"
)
PARTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "input_text": (_set("type text"), _set("prompt_cache_breakpoint")),
    "input_image": (_set("type"), _set("detail file_id image_url prompt_cache_breakpoint")),
    "input_file": (_set("type"), _set("detail file_data file_id file_url filename prompt_cache_breakpoint")),
    "output_text": (_set("type text"), _set("annotations logprobs")),
    "refusal": (_set("type refusal"), _set("")),
}
FUNCTION_TOOL = _set("type name parameters strict description defer_loading allowed_callers output_schema async")
CUSTOM_RESPONSES_TOOL = _set("type name description format defer_loading allowed_callers async")
TOOL_SEARCH_TOOL = _set("type execution description parameters")
HOSTED_TOOLS = _set(
    "file_search computer computer_use_preview web_search web_search_2025_08_26 web_search_preview "
    "web_search_preview_2025_03_11 mcp code_interpreter image_generation local_shell shell apply_patch "
    "programmatic_tool_calling"
)

# --- Chat -------------------------------------------------------------------------------------------------------

CHAT_BODY = _set(
    "messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed "
    "service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
CHAT_MESSAGES: dict[str, frozenset[str]] = {
    "system": _set("role content name"),
    "developer": _set("role content name"),
    "user": _set("role content name"),
    "assistant": _set("role content name refusal audio function_call tool_calls annotations"),
    "tool": _set("role content tool_call_id"),
    "function": _set("role content name"),
}
CHAT_PARTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (_set("type text"), _set("prompt_cache_breakpoint")),
    "image_url": (_set("type image_url"), _set("prompt_cache_breakpoint")),
    "input_audio": (_set("type input_audio"), _set("prompt_cache_breakpoint")),
    "file": (_set("type file"), _set("prompt_cache_breakpoint")),
    "refusal": (_set("type refusal"), _set("")),
}
