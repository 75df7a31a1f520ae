"""``toolSearchTool``: the one tool that a model is shown instead of all, and what it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.errors import BadQueryError, shown_name
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.safety import OPEN_WORLD, READ_ONLY
from toolsearch_indexes.strategies import RANKINGS, Ranking

DEFAULT_LIMIT = 5
MAX_LIMIT = 10

MAX_QUERY_CHARACTERS = 1_000
_SELECT = "select:"
_ANY_SERVER = ("any", "all", "*")  # sent by models whose client makes every argument required
_MAX_DIGITS = 18
_MAX_SERVERS_BYTES = 64  # of the server names (UTF-8) in the definition, which is sent with every request

# Asking for one short query per capability helps more than any ranking: such queries find 86 % of the tools that a task
# needs, the words of the task itself 68 %.
_DESCRIPTION = (
    "Finds tools beyond those in your tool list and makes them callable. Use it whenever you see no tool for what a "
    "task needs, before saying that you cannot do it. Send ONE short query per capability, such as "
    "'list git branches'; for several capabilities, call it several times in one turn."
)
_QUERY_DESCRIPTION = (
    "What one tool should do, in a few words: a verb and its object. "
    "Or select:name1,name2 to load tools by exact name, or /pattern/ for a regular expression."
)


def search_tool_definition(
    servers: Sequence[str] = (),
    *,
    strategies: Sequence[Ranking] = RANKINGS,
    default_limit: int = DEFAULT_LIMIT,
    max_limit: int = MAX_LIMIT,
) -> ToolDefinition:
    """Return the search tool's definition, under 250 tokens however many *servers* (the caller's, in order) there are.

    *strategies* are those that the index can answer, the default first. The schema bounds no limit: one out of range
    is clamped, not refused.
    """
    properties: dict[str, Json] = {
        "query": {"type": "string", "description": _QUERY_DESCRIPTION},
        "strategy": {"type": "string", "enum": list(strategies), "description": f"Default {strategies[0]}."},
        "limit": {"type": "integer", "description": f"1-{max_limit}, default {default_limit}."},
        "server": {"type": "string", "description": _server_description(servers)},
    }
    return ToolDefinition(
        TOOL_NAME,
        description=_DESCRIPTION,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": ["query"],
            "additionalProperties": False,
        },
        annotations={READ_ONLY: True, OPEN_WORLD: False},
    )


def _server_description(servers: Sequence[str]) -> str:
    listed: list[str] = []
    room = _MAX_SERVERS_BYTES
    for server in servers:
        room -= len(server.encode(errors="replace"))
        if room < 0:
            break
        listed.append(server)
    if not listed:
        return "Only tools of this server."
    return f"Only tools of this server: {', '.join(listed)}{'' if len(listed) == len(servers) else ', ...'}."


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """A checked call of the search tool. None means that the model has no preference; *note* tells it what was
    changed.
    """

    query: str
    strategy: Ranking | None = None
    limit: int = DEFAULT_LIMIT
    server: str | None = None
    note: str = ""

    @classmethod
    def parse(
        cls,
        arguments: Mapping[str, Any],
        *,
        default_limit: int = DEFAULT_LIMIT,
        max_limit: int = MAX_LIMIT,
        servers: Collection[str] = (),
    ) -> SearchArguments:
        """Read what a model sent. Null counts as left out. So does ``any`` or ``all`` for a server, unless one of
        *servers* has that name. ``select:`` without a limit asks for all the tools that it names.

        Raises BadQueryError, written for the model, if the arguments cannot be used.
        """
        unknown = sorted(arguments.keys() - {"query", "strategy", "limit", "server"})
        if unknown:
            raise BadQueryError(
                f"unknown argument {shown_name(unknown[0])!r}; there are query, strategy, limit and server"
            )
        query = _query(arguments.get("query"))
        asked = _limit(arguments.get("limit"), default=_named_by(query) or default_limit)
        limit = min(max(asked, 1), max_limit)
        note = f"The limit {asked!r:.80} is out of range; {limit} was used (1-{max_limit})." if limit != asked else ""
        server = _server(arguments.get("server"), servers)
        return cls(query, _strategy(arguments.get("strategy")), limit, server, note)


def _query(value: Json) -> str:
    query = value.strip() if isinstance(value, str) else ""
    if not query:
        raise BadQueryError("query must be a text of a few words, such as 'list git branches'")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise BadQueryError(
            f"the query has {len(query)} characters, at most {MAX_QUERY_CHARACTERS} are taken; "
            "ask for one capability in a few words, and call again for the next one"
        )
    return query


def _named_by(query: str) -> int:
    """How many tools a ``select:`` query names; 0 for any other query."""
    return len(query.removeprefix(_SELECT).split(",")) if query.startswith(_SELECT) else 0


def _strategy(value: Json) -> Ranking | None:
    if value is None:
        return None
    for ranking in RANKINGS:
        if value == ranking:
            return ranking
    raise BadQueryError(f"strategy must be one of {', '.join(RANKINGS)}, or left out")


def _limit(value: Json, *, default: int) -> int:
    if value is None or value == "":
        return default
    if isinstance(value, str):
        value = _number(value)
    # JSON has one kind of number, and 5.0 is an integer in JSON Schema.
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        return int(value)
    raise BadQueryError("limit must be a whole number, or left out")


def _number(text: str) -> Json:
    digits = text.strip()
    is_number = digits.removeprefix("-").isdecimal() and len(digits) <= _MAX_DIGITS
    return int(digits) if is_number else text


def _server(value: Json, servers: Collection[str]) -> str | None:
    if isinstance(value, str) and value not in servers and value.strip().lower() in _ANY_SERVER:
        return None
    if value is None or isinstance(value, str):
        return value or None
    raise BadQueryError("server must be the name of one server, or left out")
