"""The scripted model: it sees the callable tools and a wire-neutral conversation, and answers with a reply."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .core import Json, digest

Stop = Literal["auto", "cut", "refusal", "pause"]


@dataclass(frozen=True)
class VisibleTool:
    """A tool as the model sees it. Deferred tools that no search has loaded are not callable."""

    name: str
    description: str = ""
    parameters: Json = field(default_factory=dict)
    kind: Literal["function", "custom", "native_search"] = "function"
    callable: bool = True
    origin: Literal["tools", "added", "loaded"] = "tools"
    namespace: str | None = None


@dataclass(frozen=True)
class PastCall:
    """A call in the conversation; `arguments` is what the wire carried, parsed where it parses."""

    id: str
    name: str
    arguments: Any
    namespace: str | None = None


@dataclass(frozen=True)
class PastResult:
    """The result of a call: its text and the tools it referred to."""

    id: str
    text: str
    references: tuple[str, ...] = ()


@dataclass
class Turn:
    """One turn of the conversation, the same on every wire."""

    role: Literal["system", "user", "assistant"]
    text: str = ""
    calls: list[PastCall] = field(default_factory=list)
    results: list[PastResult] = field(default_factory=list)


@dataclass(frozen=True)
class Text:
    """Text of the model."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """Thinking (Messages), a reasoning item (Responses) or reasoning tokens (Chat)."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A call. `broken` sends these raw characters as arguments instead (OpenAI wires only)."""

    name: str
    arguments: Json = field(default_factory=dict)
    namespace: str | None = None
    broken: str | None = None


@dataclass(frozen=True)
class Search:
    """A native tool search, run by the provider itself or, on Responses, by the client when it asked for that."""

    query: str


Part = Text | Thinking | ToolCall | Search


@dataclass
class Reply:
    """What the model says. `cut` ends the answer at the token limit, inside its last part."""

    parts: list[Part]
    stop: Stop = "auto"


Brain = Callable[[list[VisibleTool], list[Turn]], Reply]


def say(text: str) -> Brain:
    """A brain that always answers with the same text."""
    return lambda tools, turns: Reply([Text(text)])


def scripted(replies: Sequence[Reply | Callable[[list[VisibleTool], list[Turn]], Reply]]) -> Brain:
    """A brain that gives these replies one after another, then a closing text."""
    left = list(replies)

    def brain(tools: list[VisibleTool], turns: list[Turn]) -> Reply:
        if not left:
            return Reply([Text("Nothing more to say.")])
        step = left.pop(0)
        return step if isinstance(step, Reply) else step(tools, turns)

    return brain


def is_search(tool: VisibleTool) -> bool:
    """Whether the tool looks like a search for tools: the name says so and it takes a query."""
    keys = (tool.parameters.get("properties") or {}) if isinstance(tool.parameters, dict) else {}
    return tool.kind == "function" and "search" in tool.name.lower() and ("queries" in keys or "query" in keys)


def call_through_keys(tool: VisibleTool) -> tuple[str, str] | None:
    """The keys for the tool's name and its arguments, if this tool calls other tools."""
    keys = (tool.parameters.get("properties") or {}) if isinstance(tool.parameters, dict) else {}
    if "call" not in tool.name.lower() and "invoke" not in tool.name.lower():
        return None
    name = next((key for key in ("name", "tool", "tool_name", "toolName") if key in keys), None)
    arguments = next((key for key in ("arguments", "args", "input", "parameters") if key in keys), None)
    return (name, arguments) if name and arguments else None


def search_arguments(tool: VisibleTool, query: str) -> Json:
    """Arguments for a search-like tool, shaped as its schema asks."""
    properties: Json = tool.parameters.get("properties") or {}
    if "queries" not in properties:
        return {"query": query}
    schema = properties["queries"] if isinstance(properties["queries"], dict) else {}
    inside = schema.get("items")
    items: Json = inside if isinstance(inside, dict) else {}
    if schema.get("type") == "string":
        return {"queries": query}
    if items.get("type") == "object":
        inner: Json = items.get("properties") or {}
        key = "query" if "query" in inner or not inner else next(iter(inner))
        return {"queries": [{key: query}]}
    return {"queries": [query]}


def _shows(text: str, name: str, query: str) -> bool:
    """Whether a result shows the tool's definition, and does not merely repeat a query that has the name in it."""
    if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
        return False
    hints = ("parameters", "properties", "input_schema", "inputSchema", "arguments", "description")
    return name not in query or any(hint in text for hint in hints)


@dataclass(frozen=True)
class Need:
    """A tool the task needs, how to call it and what to search for when it is not there."""

    tool: str
    arguments: Json = field(default_factory=dict)
    query: str = ""


class TaskBrain:
    """Does a task: calls the tools it needs by name, or finds them first, then answers in text.

    `needs` is a list for every user turn, or a mapping from a marker in the latest user text to a list.
    `missed` collects the tools that could neither be called nor found.
    """

    def __init__(
        self,
        needs: Sequence[Need] | Mapping[str, Sequence[Need]],
        answer: str = "Done.",
        *,
        think: str = "",
        parallel: bool = False,
    ) -> None:
        self.needs = needs
        self.answer = answer
        self.think = think
        self.parallel = parallel
        self.missed: list[str] = []

    def __call__(self, tools: list[VisibleTool], turns: list[Turn]) -> Reply:
        parts: list[Part] = [Thinking(self.think)] if self.think else []
        start = max((i for i, turn in enumerate(turns) if turn.role == "user" and turn.text), default=0)
        done = {name for turn in turns[start:] for name in self._called(turn)}
        calls: list[Part] = []
        for need in self._wanted(turns):
            if need.tool in done:
                continue
            step = self._step(need, tools, turns, start)
            if step is None:
                if need.tool not in self.missed:
                    self.missed.append(need.tool)
                continue
            if step not in calls:
                calls.append(step)
            if not self.parallel:
                break
        return Reply([*parts, *calls]) if calls else Reply([*parts, Text(self.answer)])

    def _wanted(self, turns: list[Turn]) -> Sequence[Need]:
        if not isinstance(self.needs, Mapping):
            return self.needs
        text = next((turn.text for turn in reversed(turns) if turn.role == "user" and turn.text), "")
        return next((needs for marker, needs in self.needs.items() if marker in text), [])

    @staticmethod
    def _called(turn: Turn) -> list[str]:
        names: list[str] = []
        for call in turn.calls:
            names.append(call.name)
            if isinstance(call.arguments, dict):
                names += [
                    str(call.arguments[key])
                    for key in ("name", "tool", "tool_name", "toolName")
                    if isinstance(call.arguments.get(key), str) and "call" in call.name.lower()
                ]
        return names

    def _step(self, need: Need, tools: list[VisibleTool], turns: list[Turn], start: int) -> Part | None:
        direct = next((tool for tool in tools if tool.name == need.tool and tool.callable), None)
        if direct is not None:
            return ToolCall(need.tool, dict(need.arguments), direct.namespace)
        query = need.query or need.tool
        asked = [call for turn in turns[start:] for call in turn.calls if query in json.dumps(call.arguments)]
        if any(tool.kind == "native_search" for tool in tools) and not asked:
            return Search(query)
        shown = any(
            need.tool in result.references or _shows(result.text, need.tool, query)
            for turn in turns
            for result in turn.results
        )
        through = next((tool for tool in tools if tool.callable and call_through_keys(tool)), None)
        if shown and through is not None:
            name, arguments = call_through_keys(through) or ("name", "arguments")
            return ToolCall(through.name, {name: need.tool, arguments: dict(need.arguments)}, through.namespace)
        search = next((tool for tool in tools if tool.callable and is_search(tool)), None)
        if search is not None and not asked:
            return ToolCall(search.name, search_arguments(search, query), search.namespace)
        return None


_WORDS = (
    "weather invoice calendar ticket deploy stock translate image mail contact budget file note timer route price "
    'überprüfung données 天気 \U0001f600 "quoted" back\\slash new\nline tab\there </tag>'
).split(" ")


def sample_value(schema: Any, rng: random.Random, depth: int = 0) -> Any:
    """A value that fits a JSON schema, more or less."""
    if not isinstance(schema, dict) or depth > 4:
        return rng.choice(_WORDS)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = rng.choice(kind) if kind else None
    if kind == "integer":
        return rng.randint(0, 99)
    if kind == "number":
        return rng.choice([0.5, 3, -2.25, 1e20])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        return [sample_value(schema.get("items"), rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        needed = schema.get("required") or []
        return {
            key: sample_value(value, rng, depth + 1)
            for key, value in properties.items()
            if key in needed or rng.random() < 0.5
        }
    return " ".join(rng.choices(_WORDS, k=rng.randint(1, 4)))


class RandomBrain:
    """A seeded random model for fuzzing. The same seed, tools and conversation give the same reply.

    Each rate is the chance that the thing happens in one reply.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        calls: float = 0.55,
        thinking: float = 0.5,
        text: float = 0.6,
        searches: float = 0.3,
        bad: float = 0.15,
        cut: float = 0.06,
        most_calls: int = 4,
        most_rounds: int = 6,
        broken: bool = True,
    ) -> None:
        self.seed = seed
        self.calls = calls
        self.thinking = thinking
        self.text = text
        self.searches = searches
        self.bad = bad
        self.cut = cut
        self.most_calls = most_calls
        self.most_rounds = most_rounds
        self.broken = broken

    def __call__(self, tools: list[VisibleTool], turns: list[Turn]) -> Reply:
        key = digest(
            [
                [
                    turn.role,
                    turn.text,
                    [[call.name, call.arguments] for call in turn.calls],
                    [result.text for result in turn.results],
                ]
                for turn in turns
            ]
        )
        rng = random.Random(f"{self.seed}:{key}:{[tool.name for tool in tools if tool.callable]}")
        rounds = 0
        for turn in reversed(turns):
            if turn.role == "user" and turn.text and not turn.results:
                break
            rounds += turn.role == "assistant"
        parts: list[Part] = []
        if rng.random() < self.thinking:
            parts.append(Thinking(self._words(rng, 3, 30)))
        if rng.random() < self.text:
            parts.append(Text(self._words(rng, 1, 40)))
        usable = [tool for tool in tools if tool.callable and tool.kind != "native_search"]
        native = [tool for tool in tools if tool.kind == "native_search"]
        if rounds < self.most_rounds and native and rng.random() < self.searches:
            parts.append(Search(rng.choice(_WORDS)))
        elif rounds < self.most_rounds and usable and rng.random() < self.calls:
            searching = [tool for tool in usable if is_search(tool)]
            for _ in range(rng.randint(1, self.most_calls)):
                pool = searching if searching and rng.random() < self.searches else usable
                parts.append(self._call(rng.choice(pool), rng, tools))
        if not any(isinstance(part, (Text, ToolCall, Search)) for part in parts):
            parts.append(Text(self._words(rng, 1, 30)))
        last_call = isinstance(parts[-1], Search)
        return Reply(parts, "cut" if not last_call and rng.random() < self.cut else "auto")

    @staticmethod
    def _words(rng: random.Random, low: int, high: int) -> str:
        return " ".join(rng.choices(_WORDS, k=rng.randint(low, high)))

    def _call(self, tool: VisibleTool, rng: random.Random, tools: list[VisibleTool]) -> ToolCall:
        if rng.random() < self.bad:
            if self.broken and rng.random() < 0.3:
                return ToolCall(tool.name, {}, tool.namespace, broken=rng.choice(['{"a": ', "", "null", "[1]"]))
            return ToolCall(tool.name, rng.choice([{}, {"nonsense": [1, None]}, {"": {"deep": {}}}]), tool.namespace)
        keys = call_through_keys(tool)
        if keys:
            names = [other.name for other in tools if other.name != tool.name] + ["noSuchTool"]
            return ToolCall(tool.name, {keys[0]: rng.choice(names), keys[1]: {}}, tool.namespace)
        if is_search(tool):
            return ToolCall(tool.name, search_arguments(tool, rng.choice(_WORDS)), tool.namespace)
        value = sample_value({"type": "object", **tool.parameters}, rng)
        return ToolCall(tool.name, value if isinstance(value, dict) else {}, tool.namespace)
