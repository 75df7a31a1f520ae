"""``toolSearchTool``: the one tool that replaces all others in a model's list, and the checks of its arguments."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from toolsearch.errors import BadQueryError, shown_name
from toolsearch.tools.definition import KINDS, OPEN_WORLD, READ_ONLY, EntryKind, ToolDefinition, legal_name
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch_indexes.queries import RANKINGS, Ranking

DEFAULT_LIMIT: Final = 5
MAX_LIMIT: Final = 10
MAX_QUERIES: Final = 8
LIST_SERVERS: Final = "servers:"
MAX_QUERY_CHARACTERS: Final = 1_000
_SELECT = "select:"
_EVERY_SERVER = "*"


# Some clients make every argument required, and their models send these words.
_ANY_SERVER = ("any", "all", _EVERY_SERVER)
_MAX_DIGITS = 18
_ARGUMENTS = ("queries", "query", "strategy", "limit", "server", "kinds")


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """One search of a call. None means that the model has no preference; *kinds* are then `FOUND_KINDS`."""

    query: str
    strategy: Ranking | None = None
    limit: int = DEFAULT_LIMIT
    server: str | None = None
    kinds: tuple[EntryKind, ...] | None = None


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """A checked call of the search tool.

    searches       one for each query, in their order, no query twice
    note           tells the model how its request was changed
    lists_servers  text in the names of the servers that the model asks about: "" for all; None: it does not ask
    """

    searches: tuple[AskedSearch, ...]
    note: str = ""
    lists_servers: str | None = None

    @classmethod
    def parse(
        cls,
        arguments: Mapping[str, Any],
        *,
        default_limit: int = DEFAULT_LIMIT,
        max_limit: int = MAX_LIMIT,
        servers: Collection[str] = (),
    ) -> SearchArguments:
        """Read a model's arguments: ``queries``, or a single ``query``, and the options for each of them.

        Null counts as left out. So does ``any`` or ``all`` for a server, unless one of *servers* has that name.
        ``select:`` without a limit asks for all the tools that it names, and ``servers:git`` for the servers with
        ``git`` in their names. A server that is asked for as ``*`` without any query asks for all of them.

        Raises BadQueryError, written for the model, if the arguments cannot be used.
        """
        unknown = sorted(arguments.keys() - set(_ARGUMENTS))
        if unknown:
            raise BadQueryError(f"unknown argument {shown_name(unknown[0])!r}; use queries, limit and server")
        queries = _queries(arguments.get("queries"), arguments.get("query"), others=arguments)
        strategy, server = _strategy(arguments.get("strategy")), _server(arguments.get("server"), servers)
        kinds = _kinds(arguments.get("kinds"))
        searches: list[AskedSearch] = []
        notes: dict[str, None] = {}
        lists_servers: str | None = None
        for query in queries:
            if query.startswith(LIST_SERVERS):
                lists_servers = query.removeprefix(LIST_SERVERS).strip()
                continue
            asked = _limit(arguments.get("limit"), default=_named_by(query) or default_limit)
            limit = min(max(asked, 1), max_limit)
            if limit != asked:
                notes[f"The limit {asked!r:.80} is out of range; {limit} was used (1-{max_limit})."] = None
            searches.append(AskedSearch(query, strategy, limit, server, kinds))
        return cls(tuple(searches), "\n".join(notes), lists_servers)


def _queries(several: Json, single: Json, others: Mapping[str, Any]) -> list[str]:
    """All queries, each once. Some models send the list as text, and some a single query as one."""
    given = [*_list_of(several), *([] if single is None else [single])]
    if not given and others.get("server") == _EVERY_SERVER:
        return [LIST_SERVERS]
    texts = [each.strip() if isinstance(each, str) else "" for each in given]
    if not all(isinstance(each, str) for each in given) or not any(texts):
        raise BadQueryError("queries must be texts of a few words each, such as ['list git branches']")
    queries = list(dict.fromkeys(filter(None, texts)))
    if len(queries) > MAX_QUERIES:
        raise BadQueryError(
            f"these are {len(queries)} queries; one call takes at most {MAX_QUERIES}; send the rest in another call"
        )
    for query in queries:
        if len(query) > MAX_QUERY_CHARACTERS:
            raise BadQueryError(
                f"the query has {len(query)} characters; at most {MAX_QUERY_CHARACTERS} are allowed. "
                "Ask for one capability in a few words, and send another query for the next one"
            )
    return queries


def _list_of(value: Json) -> list[Json]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _json(value)
    if value is None:
        return []
    return list(cast("list[Json]", value)) if isinstance(value, list | tuple) else [value]


def _json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _named_by(query: str) -> int:
    """The number of tools that a ``select:`` query names; 0 for any other query."""
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


def _kinds(value: Json) -> tuple[EntryKind, ...] | None:
    """The kinds that are asked for, in the order of `KINDS`: given in a list, or one alone."""
    asked = {each.rstrip("s") for each in _list_of(value) if isinstance(each, str)}
    if not value:
        return None
    if not asked or not asked <= set(KINDS):
        raise BadQueryError(f"kinds must be some of {', '.join(KINDS)}, or left out")
    return tuple(kind for kind in KINDS if kind in asked)


# These texts must not depend on the catalog: a definition that changes during a conversation costs the prompt cache.
# Asking for one short query per capability helps more than any ranking: such queries find 86 % of the tools that a task
# needs, the words of the task itself 68 %.
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

    The *hint* comes from the operator, and stands last. The *subject* describes the tools, for example by the names of
    servers; it is in the first sentence, because clients with their own search find a tool by that.

    The schema sets no bounds for the limit: a value out of range is clamped, not refused. It has no strategy either,
    because the application chooses it; a strategy that a model sends anyway is used.
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


Topics: TypeAlias = Mapping[str, Sequence[str]]  # of each server: words from its tools' names, the most frequent first
MOST_TOPICS: Final = 4  # words for one server
_NAMES_WIDTH: Final = 80  # most characters of the names of all servers
_NAME_WIDTH: Final = 32  # most characters of a server's name


def names_of(servers: Iterable[str]) -> str:
    """Name as many of *servers* as fit into a short subject; "" for none."""
    return said_of(dict.fromkeys(servers, ()), _NAMES_WIDTH)


def said_of(topics: Topics, width: int) -> str:
    """Name the servers, each with as many of its topics as fit; "" for none."""
    names = {server: name for server in sorted(topics) if (name := legal_name(server)[:_NAME_WIDTH])}
    for most in range(MOST_TOPICS, -1, -1):
        parts = [_with_topics(name, topics[server][:most]) for server, name in names.items()]
        if len(", ".join(parts)) <= width:
            return ", ".join(parts)
    shown: list[str] = []
    for name in names.values():
        if len(", ".join([*shown, name])) > width:
            break
        shown.append(name)
    return f"{', '.join(shown)} and {len(names) - len(shown)} more"


def _with_topics(name: str, topics: Sequence[str]) -> str:
    return f"{name} ({', '.join(topics)})" if topics else name
