"""``toolSearchTool``: the one tool that a model is shown instead of all, what it takes, and how its answer reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.errors import BadQueryError, shown_name
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import ToolDefinition, ToolReference
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME

STRATEGIES = ("hybrid", "keyword", "semantic", "regex")
DEFAULT_LIMIT = 5
MAX_LIMIT = 10

_MAX_QUERY_CHARACTERS = 1_000
_SELECT = "select:"
_ANY_SERVER = ("any", "all", "*")  # what models send where their client has made every argument required
_MAX_DIGITS = 18
_MAX_SERVERS_BYTES = 64  # UTF-8 of the server names in the definition, which every request pays for
_SUMMARY_WIDTHS = (240, 160, 100, 60, 30, 0)  # characters; tried in turn until an answer fits

# Asking for one short query per capability is worth more than any ranking: measured, such queries find .86 of the
# tools that a task needs, the task's own words .68.
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
    strategies: Sequence[str] = STRATEGIES,
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
        annotations={"readOnlyHint": True, "openWorldHint": False},
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
    """A call of the search tool, checked. A None is the model's having no wish; *note* tells it what was changed."""

    query: str
    strategy: str | None = None
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
        """Read what a model sent; null counts as left out, and so does ``any`` or ``all`` for a server, unless one of
        *servers* has that name. ``select:`` without a limit asks for all it names.

        Raises BadQueryError, written for the model, if it cannot be used.
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
    if len(query) > _MAX_QUERY_CHARACTERS:
        raise BadQueryError(
            f"the query has {len(query)} characters, at most {_MAX_QUERY_CHARACTERS} are taken; "
            "ask for one capability in a few words, and call again for the next one"
        )
    return query


def _named_by(query: str) -> int:
    """How many tools a ``select:`` query names; 0 for any other query."""
    return len(query.removeprefix(_SELECT).split(",")) if query.startswith(_SELECT) else 0


def _strategy(value: Json) -> str | None:
    if value is None or (isinstance(value, str) and value in STRATEGIES):
        return value
    raise BadQueryError(f"strategy must be one of {', '.join(STRATEGIES)}, or left out")


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


def render_answer(
    references: Sequence[ToolReference],
    *,
    call_hint: str,
    token_cap: int = 800,
    counter: TokenCounter,
    newly_loaded: Collection[str] = (),
    already_loaded: Collection[str] = (),
    note: str = "",
) -> str:
    """Return what the model reads of a search's results, best first, in at most *token_cap* tokens.

    *call_hint* says how these tools are called from now on, which depends on the client. To fit, summaries are cut,
    then left out, then the last tools are only counted. The first lines are given even if they alone exceed the cap.
    """
    if not references:
        return "\n".join(filter(None, [_NOTHING_FOUND, note]))
    head = _head(len(references), len(newly_loaded), with_confidence(call_hint, references))
    for width in _SUMMARY_WIDTHS:
        lines = [_line(reference, width, already_loaded) for reference in references]
        answer = "\n".join(filter(None, [head, *lines, note]))
        if counter.count(answer) <= token_cap:
            return answer
    for shown in range(len(references) - 1, 0, -1):
        lines = [_line(reference, 0, already_loaded) for reference in references[:shown]]
        answer = "\n".join(filter(None, [head, *lines, _more(len(references) - shown), note]))
        if counter.count(answer) <= token_cap:
            return answer
    return "\n".join(filter(None, [head, _more(len(references)), note]))


def refused_note(names: Sequence[str]) -> str:
    """What the model is told of tools that were found and are too long to be shown; "" for none."""
    return f"Found as well, but too long to be shown: {', '.join(names)}." if names else ""


_NOTHING_FOUND = (
    "No tool found. Try other words for the same capability (a verb and its object), one capability per query, "
    "no server, or strategy 'keyword'. If that finds nothing either, there is no such tool."
)

_WEAK = "They fit only weakly: if none is what you need, search once more in other words."


def with_confidence(call_hint: str, references: Sequence[ToolReference]) -> str:
    """*call_hint*, with a word on it where even the first of *references* fits only weakly; there has to be one."""
    return call_hint if references[0].confidence == "high" else f"{call_hint} {_WEAK}".strip()


def _head(found: int, new: int, call_hint: str) -> str:
    counted = "1 tool found" if found == 1 else f"{found} tools found"
    return f"{counted}{f', {new} of them new' if new else ''}. {call_hint}".rstrip()


def _more(count: int) -> str:
    return f"... and {count} more"


def _line(reference: ToolReference, width: int, already_loaded: Collection[str]) -> str:
    loaded = " (was loaded already)" if reference.name in already_loaded else ""
    summary = _one_line(reference.summary, width)
    return f"- {reference.name}{loaded}{f': {summary}' if summary else ''}"


def _one_line(text: str, width: int) -> str:
    """Cut *text* at a word to at most *width* characters. One line, so that no summary can pose as the next result."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= width:
        return line
    head = line[: max(width - 1, 0)]
    return f"{head.rpartition(' ')[0] or head}…" if head else ""
