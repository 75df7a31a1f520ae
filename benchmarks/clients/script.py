"""A model that is after one tool: it takes the ways that it is shown, in one order, and notes which of them fail.

1. It calls the tool by name if it has it.
2. It asks `toolSearchTool` if it has that, and calls the tool as the answer says; if that fails, as the error says.
3. It asks the agent's own search: first in words, then for names that the agent has told of.

A way that has failed is not taken again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.clients.drivers import Agent
from benchmarks.clients.running import OURS
from tests.kit.loopback import Call, Reply, Seen

SEARCH = "toolSearchTool"
CALL_TOOLS = ("callToolRead", "callToolWrite", "callToolDestructive")
_OWN_SEARCHES = ("ToolSearch", "tool_search")  # of Claude Code; of Codex and Qwen Code
_OWN_CALL = "tool_call"  # of Qwen Code, for what its search has found
_NOT_FOUND = "Not found"  # as Qwen Code says of a name
_MOST_CALLS = 8


@dataclass(frozen=True, slots=True)
class Task:
    """
    prompt     what a person asks
    words      what a model asks a search for
    server     that has the tool
    tool       its name there
    arguments  of the right call
    sign       stands in its result if it has run
    """

    prompt: str
    words: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    sign: str

    @property
    def name(self) -> str:
        """The tool's name behind the gateway."""
        return f"{self.server}__{self.tool}"


@dataclass(frozen=True, slots=True)
class Made:
    """A call with its result, as the model reads it."""

    way: str
    name: str
    result: str = ""
    is_good: bool = False


@dataclass(slots=True)
class Model:
    """The script of one conversation; *is_behind* says that the gateway stands before the servers."""

    agent: Agent
    task: Task
    is_behind: bool
    made: list[Made] = field(default_factory=list[Made])

    def __call__(self, seen: Seen) -> Reply:
        self._judge(seen)
        if not self.is_done and len(self.made) < _MOST_CALLS:
            for way, call in self._ways(seen):
                if way not in {each.way for each in self.made}:
                    self.made.append(Made(way, call.name))
                    return Reply(calls=[call])
        return Reply("It is done." if self.is_done else "I cannot do that.")

    @property
    def is_done(self) -> bool:
        return any(each.way.startswith("call") and each.is_good for each in self.made)

    @property
    def failed(self) -> list[Made]:
        return [each for each in self.made if not each.is_good]

    @property
    def answer(self) -> str:
        """What our search tool has answered; "" if it was not asked."""
        return next((each.result for each in self.made if each.way == "search"), "")

    def _judge(self, seen: Seen) -> None:
        """Note the result of the last call. A search is good if it names a tool that is of use."""
        if not self.made:
            return
        last, result = self.made[-1], seen.results[-1] if seen.results else ""
        useful = [self.task.tool, *([SEARCH] if self.is_behind else [])]
        signs = [self.task.sign] if last.way.startswith("call") else useful
        is_good = any(sign in result for sign in signs) and not result.startswith(_NOT_FOUND)
        self.made[-1] = replace(last, result=result, is_good=is_good)

    def _ways(self, seen: Seen) -> Iterator[tuple[str, Call]]:
        task, server = self.task, OURS if self.is_behind else self.task.server
        direct = self.agent.called_name(server, task.name if self.is_behind else task.tool)
        if self._can_call(seen, direct):
            yield "call", self._call(seen, direct, task.arguments)
        search = self.agent.called_name(OURS, SEARCH)
        if self.is_behind and self._can_call(seen, search):
            yield "search", self._call(seen, search, {"queries": [task.words]})
        if self.answer:
            yield from self._as_answered(seen, direct)
        own = next((tool for name in _OWN_SEARCHES if (tool := seen.tool(name)) and tool.name == name), None)
        if own:
            names = (
                [self.agent.called_name(OURS, name) for name in (SEARCH, *CALL_TOOLS)] if self.is_behind else [direct]
            )
            yield "own search", Call(own.name, {"query": task.words})
            yield "own search by name", Call(own.name, {"query": f"select:{','.join(names)}"})

    def _as_answered(self, seen: Seen, direct: str) -> Iterator[tuple[str, Call]]:
        arguments = {"name": self.task.name, "arguments": dict(self.task.arguments)}
        found = next((each for each in found_in(self.answer) if each.get("name") == self.task.name), dict[str, Any]())
        call_with = str(found.get("callWith", ""))
        if call_with:
            tool = seen.tool(call_with)
            yield "call as answered", self._call(seen, tool.name if tool else call_with, arguments)
        elif self.task.name in self.answer:
            yield "call", self._call(seen, direct, self.task.arguments)
        for name in (CALL_TOOLS[0], *(each for each in CALL_TOOLS if each in self.made[-1].result)):
            yield f"call with {name}", self._call(seen, self.agent.called_name(OURS, name), arguments)

    def _can_call(self, seen: Seen, name: str) -> bool:
        is_listed = any(each.name == name and not each.is_deferred for each in seen.tools)
        return is_listed or (seen.tool(_OWN_CALL) is not None and any(name in each for each in seen.results))

    def _call(self, seen: Seen, name: str, arguments: Mapping[str, Any]) -> Call:
        """A call, through the agent's own tool for that if it has one and does not list the other."""
        if seen.tool(_OWN_CALL) and not any(each.name == name for each in seen.tools):
            return Call(_OWN_CALL, {"name": name, "arguments": dict(arguments)})
        return Call(name, dict(arguments))


def found_in(answer: str) -> list[dict[str, Any]]:
    """The tools that an answer of our search tool describes as JSON: one in each line, or all of them in one object.

    An agent may have put the answer into a text, or the whole result as JSON.
    """
    decoder, found = json.JSONDecoder(), list[dict[str, Any]]()
    at = answer.find("{")
    while at >= 0:
        try:
            document, end = decoder.raw_decode(answer, at)
        except ValueError:
            end = at + 1
        else:
            tools: Sequence[Any] = document.get("tools", [document] if "name" in document else [])
            found += [tool for tool in tools if isinstance(tool, dict)]
            found += [tool for part in document.get("content", []) for tool in found_in(part.get("text", ""))]
            found += found_in(json.dumps(document["structuredContent"])) if "structuredContent" in document else []
        at = answer.find("{", end)
    return found
