"""28 tools: the weather, the clothing shops and the time, and 25 tools of a shop (Spring AI)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.published.side_by_side import (
    Line,
    Workload,
    cut,
    money_lines,
    paragraphs,
    played_in,
    searching,
    text_of,
    tokens_of,
)
from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.ways import EVERY
from toolsearch.wire.capabilities import Endpoint

_PUBLISHED = {  # tokens with search (Lucene) and without, requests with and without
    "gpt-5-mini": (4_706, 7_175, 5, 3),
    "claude-sonnet-4-5": (6_273, 17_342, 5, 4),
}
_ENDPOINTS = (Endpoint("openai", "gpt-5-mini"), Endpoint("anthropic", "claude-sonnet-4-5"))
_THINGS = {  # of the shop: its fields, and what it is also found by
    "Product": ("name description", ""),
    "Perfume": ("name brand", "Name"),
    "PerfumeVariation": ("scent volume", "Volume"),
    "Shoes": ("brand model size", "Brand"),
    "ShoesVariation": ("color size", "Size"),
}
_STRING: Mapping[str, Any] = {"type": "string"}
_NUMBER: Mapping[str, Any] = {"type": "integer", "format": "int64"}


_DIFFERENCES = """
Published: one task, a few runs by hand, the tokens of all requests together. Nothing is said of caching.

The demo that can be read today has 23 tools of a shop, and the figures were taken with 25: two were added.
Descriptions are as long as theirs, in other words.

How often a model searches is scripted: for what it needs next, in one search. Claude made one request more there, and
searched while it called a tool, which is not done here.

A provider's own count of tokens, its frame around tools, and what a model thinks before it answers are in the
published figures and not in ours. Claude's own tokenizer counts more than o200k_base.

Gemini has no wire format of its own here, so that its row has no figure.
"""


def weather() -> Workload:
    return Workload(
        "28 tools, a question about the weather (Spring AI)",
        (
            "https://spring.io/blog/2025/12/11/spring-ai-tool-search-tools-tzolov",
            "https://github.com/spring-ai-community/spring-ai-tool-search-tool, examples/tool-search-tool-demo",
        ),
        [
            *(line for endpoint in _ENDPOINTS for line in _lines(endpoint)),
            Line("gemini-3-pro-preview: saved", "60%", ""),
        ],
        paragraphs(_DIFFERENCES),
    )


def _lines(endpoint: Endpoint) -> Iterator[Line]:
    with_search, without, requests_with, requests_without = _PUBLISHED[endpoint.model]
    by_way = played_in(weather_tools(), [weather_conversation()], endpoint)
    of, every = f"{endpoint.model}: ", by_way[EVERY]
    yield Line(f"{of}every definition, tokens", f"{without:,}", f"{tokens_of(every):,}")
    yield Line(f"{of}every definition, requests", f"{requests_without}", f"{len(every[0].prompts)}")
    for way in searching(by_way):
        ours = by_way[way]
        yield Line(f"{of}search, {way}, tokens", f"{with_search:,}", f"{tokens_of(ours):,}")
        yield Line(f"{of}search, {way}, requests", f"{requests_with}", f"{len(ours[0].prompts)}")
        yield Line(f"{of}search, {way}, saved", cut(with_search, without), cut(tokens_of(ours), tokens_of(every)))
    yield from money_lines(by_way, endpoint.model, of)


def weather_conversation() -> Dialogue:
    """As it went there: the time first, then the weather and the shops at once."""
    place, now = "Landsmeer, NL", "2025-12-11T10:15:00"
    clock = Use("currentTime", {"location": place}, f"{now}.123456", ("current date and time",))
    sky = Use(
        "weather",
        {"location": place, "atTime": now},
        f"It is sunny in {place} now, at a temperature of 25°C.",
        ("weather for a location at a time",),
    )
    shops = Use("clothing", {"location": place, "atTime": now}, '["Foo","Bar","Baz"]', ("clothing shops open now",))
    asked = (
        f"What should I wear today in {place}? Name clothing shops near there that are open now. Ask the tools "
        "what time it is, and assume no date and no time."
    )
    return Dialogue((Turn(asked, (Step((clock,)), Step((sky, shops))), text_of(150)),))


def weather_tools() -> list[ToolDefinition]:
    at_time = {"location": _STRING, "atTime": {"type": "string", "description": "YYYY-MM-DDTHH:mm:ss"}}
    return [
        _tool("weather", "Tell the weather at a place and a time.", at_time),
        _tool("clothing", "Name the clothing shops that are open at a place and a time.", at_time),
        _tool("currentTime", "Tell the date and the time of day that it is now at a place.", {"location": _STRING}),
        *(tool for thing, (fields, key) in _THINGS.items() for tool in _shop_tools(thing, fields.split(), key)),
    ]


def _shop_tools(thing: str, fields: Sequence[str], key: str) -> Iterator[ToolDefinition]:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in thing).strip()
    told = ", ".join(fields)
    entry = {"type": "object", "properties": {"id": _NUMBER, **dict.fromkeys(fields, _STRING)}}
    yield _tool(
        f"save{thing}",
        f"Store a new {words} in the shop's stock, with its {told}. An id is chosen if none is given, and it is never "
        "that of another entry. The answer has what was stored, with the id. This is for new stock, for imports, and "
        "for whatever else is to be sold from now on.",
        {thing[0].lower() + thing[1:]: entry},
    )
    yield _tool(
        f"get{thing}ById",
        f"Look one {words} of the stock up by its id. The answer has all that is known of it, {told}, or nothing if "
        "there is none with that id. This is for showing it to somebody, and to see whether it is there at all.",
        {"id": _NUMBER},
    )
    yield _tool(
        f"getAll{thing}",
        f"List every {words} of the stock. The answer has the id of each, with its {told}. This is for those who want "
        "to look around, for a printed list, and for reports on what there is to be sold.",
        {},
    )
    yield _tool(
        f"delete{thing}",
        f"Take one {words} out of the stock for good, by its id. It cannot be had back, and all that is known of it is "
        "lost. This is for what is no longer sold, what has grown old, and what was entered as a test.",
        {"id": _NUMBER},
    )
    if key:
        yield _tool(
            f"get{thing}By{key}",
            f"Find the first {words} of the stock with a certain {key.lower()}. The answer has its id and its {told}, "
            f"or nothing. This is for customers who know what {key.lower()} they want, and no id.",
            {key.lower(): _STRING},
        )
    else:
        yield _tool(f"count{thing}", f"Count the entries of the kind {words} that are in stock now, and tell it.", {})


def _tool(name: str, description: str, properties: Mapping[str, Any]) -> ToolDefinition:
    schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return ToolDefinition(name, description, schema)
