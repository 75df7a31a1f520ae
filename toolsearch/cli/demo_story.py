"""What the demo does: real tools, real searches and calls, and a model whose part is written down beforehand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from toolsearch.access.reach import Reach
from toolsearch.catalog.sources.modules import ModuleSource
from toolsearch.discovery.discovered import Budget
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError, EncoderError
from toolsearch.session import Session
from toolsearch.sessions.savings import Savings
from toolsearch.settings import IndexSettings, Settings
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire import openai_chat
from toolsearch.wire.messages import AssistantMessage
from toolsearch.wire.replies import parse_tool_calls
from toolsearch.wiring import build_engine
from toolsearch_indexes.encoders.opening import BUILT_IN
from toolsearch_indexes.strategies import Ranking, Strategy

if TYPE_CHECKING:
    from toolsearch.catalog.catalog import Catalog

# Modules of the standard library whose functions take JSON values. All are indexed. Only a few are called, and those
# have no side effects.
MODULES = (
    "base64", "binascii", "calendar", "cmath", "colorsys", "copy", "csv", "difflib", "email.utils", "fnmatch",
    "functools", "glob", "gzip", "hashlib", "heapq", "hmac", "html", "ipaddress", "json", "locale", "math",
    "mimetypes", "operator", "os.path", "platform", "random", "re", "secrets", "shlex", "shutil", "statistics",
    "string", "tempfile", "textwrap", "unicodedata", "urllib.parse", "uuid", "zlib", "zoneinfo",
)  # fmt: skip

BUDGET = Budget(max_tools=4, low_water=1)  # so small that a few turns show what eviction does
_FOUND_PER_SEARCH = 3


@dataclass(frozen=True, slots=True)
class Search:
    """One search. *unavailable* is the reason if it could not be made, else ""."""

    strategy: str
    query: str
    found: tuple[tuple[str, float], ...] = ()
    seconds: float = 0.0
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's question, what the model calls in each request, and its final answer."""

    user: str
    calls: tuple[tuple[Call, ...], ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One model request and what came of it.

    shown    names of the tools in the request
    tokens   of their definitions
    reply    the model's message, as OpenAI's API has it
    appended the messages that answer its calls
    evicted  the tools that were evicted when this reply ended a turn
    """

    user: str
    shown: tuple[str, ...]
    tokens: int
    reply: dict[str, Any]
    appended: tuple[dict[str, Any], ...]
    evicted: tuple[str, ...] = ()

    @property
    def calls(self) -> list[ToolCall]:
        return parse_tool_calls(self.reply)[1]


def _search(query: str) -> Call:
    return Call(TOOL_NAME, {"query": query, "limit": _FOUND_PER_SEARCH})


TURNS = (
    Turn(
        "The median of 3, 1, 4, 1 and 5?",
        ((_search("median of numbers"),), (Call("statistics__median", {"data": [3, 1, 4, 1, 5]}),)),
        "It is 3.",
    ),
    Turn(
        "Which weekday was 20 July 1969?",
        ((_search("day of the week"),), (Call("calendar__weekday", {"year": 1969, "month": 7, "day": 20}),)),
        "A Sunday.",
    ),
    Turn(
        "And of 2, 7, 1 and 8?",
        ((Call("statistics__median", {"data": [2, 7, 1, 8]}),),),
        "It is 4.5.",
    ),
    Turn(
        "Shorten it. Was 1900 a leap year?",
        (
            (_search("shorten a text"), _search("leap year")),
            (
                Call("textwrap__shorten", {"text": "Hello wide world", "width": 12}),
                Call("calendar__isleap", {"year": 1900}),
            ),
        ),
        "'Hello [...]', and no.",
    ),
)


def load_standard_library(catalog: Catalog) -> None:
    with redirect_stdout(sys.stderr):
        for module in MODULES:
            catalog.load(ModuleSource(module))


def open_engine(catalog: Catalog, encoder: str | None) -> ToolSearch:
    """An engine whose clock only counts, so that the same tools are evicted at every run."""
    ticks = count()
    settings = Settings(index=IndexSettings(encoder=encoder or BUILT_IN), budget=BUDGET)
    return build_engine(settings, catalog, clock=lambda: float(next(ticks)))


def searches(engine: ToolSearch, servers: Sequence[str], clock: Callable[[], float]) -> Iterator[Search]:
    """Search once in each way; where one is not available, say why. *servers* are names of MCP servers."""
    words = "shorten a text to a width"
    rankings: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")
    asked: list[tuple[str, str, Strategy, str | None]] = [
        ("name", "select:statistics__median", "auto", None),
        ("regex", "/b(32|64)decode/", "auto", None),
        *((ranking, words, ranking, None) for ranking in rankings),
        ("keyword", "qwxzv jkpfh", "keyword", None),
        *((f"in {server}", "/./", "auto", server) for server in servers),
    ]
    for label, query, strategy, server in asked:
        started_s = clock()
        try:
            found = engine.search(query, limit=_FOUND_PER_SEARCH, strategy=strategy, server=server)
        except (BadQueryError, EncoderError) as error:
            yield Search(label, query, unavailable="; ".join(engine.notes) or str(error))
        else:
            ranked = tuple((reference.name, round(reference.score, 3)) for reference in found)
            yield Search(label, query, ranked, clock() - started_s)


async def converse(engine: ToolSearch, session: Session) -> list[Exchange]:
    """Play `TURNS`, a model request at a time, as a real agent loop would run."""
    exchanges: list[Exchange] = []
    for turn in TURNS:
        for calls in (*turn.calls, ()):
            shown = session.tools(format="openai")
            reply = _reply(calls, turn.answer, first_id=_calls_so_far(exchanges) + 1)
            appended = await session.execute(reply) if calls else []
            exchanges.append(
                Exchange(
                    user=turn.user if calls == turn.calls[0] else "",
                    shown=tuple(openai_chat.read_tool(tool).name for tool in shown),
                    tokens=_definition_tokens(engine, session, shown),
                    reply=reply,
                    appended=tuple(appended),
                    evicted=() if calls else tuple(session.end_turn()),
                )
            )
    return exchanges


def search_tool_tokens(engine: ToolSearch, session: Session) -> int:
    return engine.view(Reach()).tokens_of(session.resolve(TOOL_NAME).definition)


def savings_facts(savings: Savings) -> dict[str, Any]:
    return {
        "requests": savings.requests,
        "search_rounds": savings.search_rounds,
        "sent_tokens": savings.sent_tokens,
        "written_tokens": savings.written_tokens,
        "all_tools_tokens": savings.all_tools_tokens,
        "saved_tokens": savings.saved_tokens,
        "saved_share": round(savings.saved_share, 4),
        "cache_breaks": savings.cache_breaks,
        "is_estimate": savings.is_estimate,
    }


def _reply(calls: Sequence[Call], answer: str, *, first_id: int) -> dict[str, Any]:
    """The message of a chat completion."""
    asked = [
        ToolCall(f"call_{number}", call.name, json.dumps(call.arguments)) for number, call in enumerate(calls, first_id)
    ]
    return openai_chat.write_assistant(AssistantMessage("" if calls else answer, tuple(asked)))


def _calls_so_far(exchanges: Sequence[Exchange]) -> int:
    return sum(len(exchange.calls) for exchange in exchanges)


def _definition_tokens(engine: ToolSearch, session: Session, shown: Sequence[dict[str, Any]]) -> int:
    view = engine.view(Reach())
    return sum(view.tokens_of(session.resolve(tool["function"]["name"]).definition) for tool in shown)
