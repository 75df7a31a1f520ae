"""Runs the brain: native searches are done on the spot, and the caller's restrictions hold."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import replace

from .brain import Brain, PastCall, PastResult, Reply, Search, Text, Thinking, ToolCall, Turn, VisibleTool, sample_value


def find_tools(query: str, deferred: Iterable[VisibleTool], most: int = 5) -> list[VisibleTool]:
    """The deferred tools whose name or description shares most words with the query."""
    words = set(re.findall(r"\w+", query.lower()))
    scored = []
    for tool in deferred:
        text = f"{tool.name} {tool.description}".lower()
        score = sum(word in text for word in words) + (tool.name.lower() == query.lower()) * 10
        if score:
            scored.append((-score, tool.name, tool))
    return [tool for _, _, tool in sorted(scored)[:most]]


def restrict(reply: Reply, tools: list[VisibleTool], *, must: str | None, parallel: bool, thinking: bool) -> Reply:
    """Make the reply keep to the request: forced or forbidden calls, one call only, no thinking.

    `must` is None, "any", "none" or a tool's name.
    """
    parts = [part for part in reply.parts if thinking or not isinstance(part, Thinking)]
    if must == "none":
        parts = [part for part in parts if not isinstance(part, (ToolCall, Search))]
    elif must is not None:
        fitting = [part for part in parts if isinstance(part, ToolCall) and must in ("any", part.name)]
        if not fitting:
            pool = [
                tool for tool in tools if tool.callable and tool.kind != "native_search" and must in ("any", tool.name)
            ]
            if pool:
                value = sample_value({"type": "object", **pool[0].parameters}, random.Random(0))
                fitting = [ToolCall(pool[0].name, value if isinstance(value, dict) else {}, pool[0].namespace)]
        parts = [*(part for part in parts if isinstance(part, Thinking)), *fitting]
    if not parallel:
        seen = False
        kept = []
        for part in parts:
            if isinstance(part, ToolCall):
                if seen:
                    continue
                seen = True
            kept.append(part)
        parts = kept
    if not any(isinstance(part, (Text, ToolCall, Search)) for part in parts):
        parts.append(Text("All right."))
    stop = reply.stop
    if stop == "cut" and isinstance(parts[-1], (Search, Thinking)):
        stop = "auto"
    return replace(reply, parts=parts, stop=stop)


def run_searches(
    brain: Brain,
    tools: list[VisibleTool],
    turns: list[Turn],
    deferred: dict[str, VisibleTool],
    *,
    must: str | None,
    parallel: bool,
    thinking: bool,
    most: int = 4,
) -> tuple[list[object], str]:
    """Ask the brain, run its native searches as the provider does, and ask again until none is left.

    Returns the parts in order, each search followed by the list of names it found, and how the reply stops.
    """
    parts: list[object] = []
    tools = list(tools)
    turns = list(turns)
    for count in range(most + 1):
        reply = restrict(brain(tools, turns), tools, must=must, parallel=parallel, thinking=thinking)
        native = any(tool.kind == "native_search" and tool.callable for tool in tools)
        searches = [part for part in reply.parts if isinstance(part, Search)] if native and count < most else []
        if not searches:
            parts += [part for part in reply.parts if not isinstance(part, Search)]
            if not any(isinstance(part, (Text, ToolCall)) for part in parts):
                parts.append(Text("Nothing found."))
            return parts, reply.stop
        upto = reply.parts.index(searches[-1]) + 1
        turn = Turn("assistant")
        for part in reply.parts[:upto]:
            if isinstance(part, ToolCall):
                continue
            parts.append(part)
            if isinstance(part, Search):
                found = find_tools(part.query, deferred.values())
                for tool in found:
                    deferred.pop(tool.name, None)
                    tools.append(replace(tool, origin="loaded", callable=True))
                names = [tool.name for tool in found]
                parts.append(names)
                key = f"search_{len(parts)}"
                turn.calls.append(PastCall(key, "tool_search", {"query": part.query}))
                turn.results.append(PastResult(key, "", tuple(names)))
        turns.append(turn)
        if reply.stop == "pause":
            return parts, "pause"
    raise AssertionError("the loop always returns")
