"""MCP's names of fields and methods are written in one place only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import toolsearch

PACKAGE = Path(toolsearch.__file__).parent
AT_HOME = ("wire", "tools/blocks.py", "tools/safety.py")  # the last two have MCP's shape for whatever tool it is
WORDS = (
    *("inputSchema", "outputSchema", "isError", "structuredContent", "resultType", "cacheScope", "ttlMs", "nextCursor"),
    *("inputRequests", "inputResponses", "requestState", "resourceTemplates", "uriTemplate", "mimeType", "_meta"),
    *("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "resource_link", "lastModified"),
    *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read"),
)
FOR_PEOPLE = {  # what is said to people, who know the field by its name
    "gateway/proxy/sealed_state.py": {"requestState"},
    "gateway/settings.py": {"_meta"},
}


def test_no_module_but_those_of_the_wire_knows_a_field_of_mcp_by_name() -> None:
    found = {
        (place, word)
        for path in PACKAGE.rglob("*.py")
        if not (place := path.relative_to(PACKAGE).as_posix()).startswith(AT_HOME)
        for text in _texts(path)
        for word in WORDS
        if word in text and not text.startswith("__") and word not in FOR_PEOPLE.get(place, ())
    }

    assert found == set()


def _texts(path: Path) -> Iterator[str]:
    """The string literals of a module, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value
