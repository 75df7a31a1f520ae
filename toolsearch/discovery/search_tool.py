"""``toolSearchTool``: the one tool that a model is shown instead of all."""

from __future__ import annotations

from toolsearch.discovery.search_arguments import DEFAULT_LIMIT, LIST_SERVERS, MAX_LIMIT, MAX_QUERIES
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.safety import OPEN_WORLD, READ_ONLY

# These texts must not follow the catalog: a definition that changed in the middle of a conversation would cost the
# prompt cache. Asking for one short query per capability helps more than any ranking: such queries find 86 % of the
# tools that a task needs, the words of the task itself 68 %.
_DESCRIPTION = (
    "Finds tools{} beyond those in your tool list and makes them callable. Use it whenever you see no tool for what a "
    "task needs, before saying that you cannot do it. Send ONE short query per capability, and all that the task "
    "needs in one call."
)
_QUERIES_DESCRIPTION = (
    f"1-{MAX_QUERIES}. Each says in a few words what one tool should do: a verb and its object, such as "
    "'list git branches'. Or select:name1,name2 to load tools by exact name, /pattern/ for a regular expression, "
    f"{LIST_SERVERS} for what there is."
)


def search_tool_definition(
    *,
    default_limit: int = DEFAULT_LIMIT,
    max_limit: int = MAX_LIMIT,
    hint: str = "",
    subject: str = "",
) -> ToolDefinition:
    """Return the search tool's definition, at most 200 tokens without a *hint* and a *subject*.

    The *hint* is the operator's, and comes last. The *subject* is what the tools are of, such as the names of servers;
    the first sentence names it, since clients with a search of their own find a tool by that.

    The schema bounds no limit: one out of range is clamped, not refused. It names no strategy, since which one ranks is
    the application's choice; one that a model sends all the same is used.
    """
    properties: dict[str, Json] = {
        "queries": {"type": "array", "items": {"type": "string"}, "description": _QUERIES_DESCRIPTION},
        "limit": {"type": "integer", "description": f"Tools per query, 1-{max_limit}, default {default_limit}."},
        "server": {"type": "string", "description": "Only tools of this server."},
    }
    description = _DESCRIPTION.format(f" of {subject}" if subject else "")
    return ToolDefinition(
        TOOL_NAME,
        description=f"{description} {hint}".rstrip(),
        input_schema={"type": "object", "properties": properties, "required": ["queries"]},
        annotations={READ_ONLY: True, OPEN_WORLD: False},
    )
