"""The names of a format's fields, and its words for things, are written in one place only."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import toolsearch

PACKAGE = Path(toolsearch.__file__).parent
MCP = (
    *("inputSchema", "outputSchema", "isError", "structuredContent", "resultType", "cacheScope", "ttlMs", "nextCursor"),
    *("inputRequests", "inputResponses", "requestState", "resourceTemplates", "uriTemplate", "mimeType", "_meta"),
    *("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "resource_link", "lastModified"),
    *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read"),
)
MODEL_APIS = (
    *("tool_use", "tool_result", "tool_reference", "function_call", "tool_search_call", "tool_search_output"),
    *("tool_calls", "tool_call_id", "call_id", "invalid_tool_call", "input_schema", "output_schema", "defer_loading"),
    *("tool_choice", "finish_reason", "stop_reason", "end_turn", "pause_turn", "incomplete_details"),
    *("input_text", "output_text", "input_image", "image_url", "media_type", "prompt_tokens", "chat.completion"),
    *("output_config", "additional_tools", "encrypted_content", "cache_control"),
)
# Modules that may write any of them. Blocks and hints have MCP's shape for whatever tool it is; names of fields on
# spans are OpenTelemetry's.
AT_HOME = {
    MCP: ("wire/", "tools/results.py", "tools/definition.py"),
    MODEL_APIS: ("wire/", "chat/telemetry_model.py", "spans.py", "telemetry.py"),
}
OURS_AS_WELL = {  # what is said to people, who know the field by its name, and what has this name here too
    "__init__.py": {"tool_calls"},  # parse_tool_calls
    "chat/memory.py": {"tool_calls"},  # a field of our messages, as they are stored
    "chat/models/scripted.py": {"tool_calls"},  # a finish reason
    "api/imports.py": {"inputSchema"},  # where in a definition, as people are told it
    "api/catalogs.py": {"readOnlyHint"},  # an example in the description of a field
    "cli/demo_story.py": {"tool_calls"},
    "cli/show.py": {"input_schema", "output_schema"},  # what the command prints of a definition
    "reference_pages.py": {"isError", "_meta", "media_type"},  # where people find an error's code, and one of HTTP's
    "gateway/http_guard.py": {"_meta"},  # in OAuth's resource_metadata
    "gateway/proxy/suspended_calls.py": {"requestState"},
    "gateway/reports/metrics.py": {"tool_calls", "tool_result"},  # names of figures of ours
    "gateway/settings.py": {"_meta"},
    "gateway/status.py": {"input_schema"},  # a definition as its tokens are counted, in no API's format
    "tokens.py": {"input_schema"},  # the same
    "service/web/openapi.py": {"media_type"},  # in a code of HTTP
    "service/web/problems.py": {"media_type"},  # in a code of HTTP
    "service/catalogs/routes.py": {"output_schema"},  # a field of ours, in a message
    "sessions/sent.py": {"input_schema", "output_schema", "prompt_tokens"},  # fields of ours, as they are stored
    "tools/json_schema.py": {"input_schema"},  # a parameter
}


@pytest.mark.parametrize("words", AT_HOME, ids=["mcp", "model apis"])
def test_no_module_but_those_of_the_wire_knows_a_format_by_its_names(words: tuple[str, ...]) -> None:
    found = {
        (place, word)
        for path in PACKAGE.rglob("*.py")
        if not (place := path.relative_to(PACKAGE).as_posix()).startswith(AT_HOME[words])
        for text in _texts(path)
        for word in words
        if word in text and not text.startswith("__") and word not in OURS_AS_WELL.get(place, ())
    }

    assert found == set()


_ANY = re.compile("|".join(map(re.escape, (*MCP, *MODEL_APIS))))


@cache
def _texts(path: Path) -> list[str]:
    """The string literals of a module, without its docstrings; none of a module in which no word of ours stands."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source))) if _ANY.search(source) else []
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    literals = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in said)
    return [literal.value for literal in literals if isinstance(literal.value, str)]
