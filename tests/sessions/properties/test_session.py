"""Whatever is in a catalog and whatever a session does: its reach and its order hold."""

import asyncio
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.session_tools import ALWAYS_SEARCH, SEARCH, engine_of
from toolsearch import (
    Budget,
    Catalog,
    PassThrough,
    SessionOptions,
    ToolDefinition,
    ToolSearch,
)
from toolsearch_indexes.encoders.static import HashingEncoder

WORDS = ("mail", "event", "bill", "hour", "list", "send")
NAMES = tuple(f"{word}_{i}" for word in WORDS[:4] for i in range(3))
definitions = st.builds(
    lambda name, words: ToolDefinition(name, " ".join(words), server=name[:4], tags=(name[-1],)),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(WORDS), max_size=3),
)
rules = st.lists(
    st.sampled_from([*NAMES[:6], "*_1", "mail*", "server:bill", "server:e*", "tag:0", "tag:2"]), max_size=3
)
queries = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: f"select:{','.join(names)}"),
    st.sampled_from(["/a|e/", "/_1$/", "mial", "sennd", "mai", "mcp__x__mail_1"]),
)


NEAR = re.compile(r" \(did you mean ([^?]+)\?\)")


def without_echo(answer: str, query: str) -> str:
    """*answer* without those names that *query* selects and that mean no tool; the near ones stay."""
    lines = answer.splitlines()
    echo = [line for line in lines if line.startswith("No tool is named ")]
    missing = [NEAR.sub("", line)[len("No tool is named ") : -1] for line in echo]
    assert all(name in query for names in missing for name in names.split(", "))
    near = [names for line in echo for names in NEAR.findall(line)]
    return "\n".join([*(line for line in lines if line not in echo), *near])


@settings(max_examples=40, deadline=None)
@given(st.lists(definitions, min_size=1, max_size=10, unique_by=lambda each: each.name), rules, rules, queries)
def test_nothing_that_a_model_reads_names_a_tool_out_of_reach(
    tools: list[ToolDefinition], allow: list[str], deny: list[str], query: str
) -> None:
    """Neither answers, nor errors with near names, nor the tool lists. What the model itself wrote is no news to it."""
    engine = ToolSearch(Catalog(tools), encoder=HashingEncoder(16), options=SessionOptions(pass_through=ALWAYS_SEARCH))
    session = engine.session("a", allow=allow, deny=deny)
    reach = session.state.reach
    hidden = [each.name for each in tools if not reach.allows(each)]

    async def read() -> list[str]:
        texts = [
            without_echo((await session.call(SEARCH, {"query": query, "strategy": s})).text, query)
            for s in engine.strategies
        ]
        texts += [(await session.call(name + tail)).text.replace(name, "") for name in hidden for tail in ("", "x")]
        texts += [(await session.call(SEARCH, {"query": query, "server": "none"})).text, json.dumps(session.tools())]
        return texts

    read_by_model = "\n".join(asyncio.run(read()))
    assert [name for name in hidden if name in read_by_model] == []
    assert {name for name in session.discovered if name in hidden} == set()


steps = st.one_of(
    st.tuples(st.just("search"), queries),
    st.tuples(st.just("call"), st.sampled_from(NAMES)),
    st.tuples(st.just("end turn"), st.none()),
    st.tuples(st.just("put"), definitions),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("tools"), st.none()),
)


def take(engine: ToolSearch, step: tuple[str, Any]) -> set[str]:
    """Take one step of a session's life; return the tools that may be missing for it."""
    session, (kind, what) = engine.session("a"), step
    if kind == "search":
        session.search(what, limit=3)
    elif kind == "call":
        asyncio.run(session.call(what))
    elif kind == "put":
        engine.catalog.put(what)
    elif kind == "remove" and what in engine.catalog:
        engine.catalog.remove(what)
    elif kind == "tools":
        session.tools()
    elif kind == "end turn":
        return set(session.end_turn())
    return set()


@settings(max_examples=40, deadline=None)
@given(st.lists(definitions, max_size=8, unique_by=lambda each: each.name), st.lists(steps, max_size=25))
def test_the_discovered_keep_their_order_and_go_only_by_eviction_or_removal(
    tools: list[ToolDefinition], life: list[tuple[str, Any]]
) -> None:
    engine = engine_of(catalog=Catalog(tools), budget=Budget(max_tools=4))
    before = engine.session("a").discovered
    for step in life:
        evicted = take(engine, step)
        after = engine.session("a").discovered
        stayed = [name for name in before if name in after]
        assert after[: len(stayed)] == stayed
        assert all(name in evicted or name not in engine.catalog for name in before if name not in after)
        before = after


def test_what_went_cold_while_the_user_was_away_is_not_sent_again():
    now = [0.0]
    options = SessionOptions(budget=Budget(ttl_s=60), pass_through=PassThrough(max_tools=0))
    engine = ToolSearch(Catalog([ToolDefinition("send_mail", "Send a letter.")]), options=options, clock=lambda: now[0])
    session = engine.session("s")
    session.search("letter")
    session.end_turn()

    now[0] = 59.0
    assert (session.begin_turn(), session.discovered) == ([], ["send_mail"])
    now[0] = 60.0
    assert (session.begin_turn(), session.discovered) == ([], [])
