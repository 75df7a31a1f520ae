"""A fuzzing client: many conversations over raw HTTP against anything that speaks one of the wires."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from .clients import ChatClient, Client, MessagesClient, ResponsesClient, ToolDef, make_tools
from .core import Json, Wire
from .models import CLAUDE

MODELS: dict[Wire, tuple[str, ...]] = {
    "messages": (
        "claude-fable-5-1",
        "claude-opus-5-5",
        "claude-opus-5",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
        "claude-mythos-5-1",
    ),
    "responses": ("gpt-5.6", "gpt-5.6-sol", "gpt-6-sol", "gpt-5.4", "gpt-5", "gpt-4.1"),
    "chat": ("gpt-4o", "gpt-4.1", "gpt-5", "gpt-5.2", "gpt-5.6", "gpt-6-sol"),
}


@dataclass(frozen=True)
class Options:
    """How conversations go; every rate is a chance between 0 and 1."""

    turns: int = 4
    rounds: int = 12
    stream: float = 0.5
    compact: float = 0.12
    fork: float = 0.12
    repeat: float = 0.1
    native: float = 0.25
    changes: float = 0.3
    choice: float = 0.15
    stored: float = 0.25
    no_tools: float = 0.05
    retries: int = 3
    timeout: float = 60.0
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Something that was not right: a broken rule, a status outside 2xx, a broken connection."""

    kind: str
    conversation: int
    text: str
    body: Any = None
    status: int = 0
    answer: str = ""

    def __str__(self) -> str:
        """One line."""
        return f"[{self.kind}] conversation {self.conversation}: {self.text}"


@dataclass
class Report:
    """What a fuzzing run found."""

    wire: Wire
    conversations: int = 0
    requests: int = 0
    calls: int = 0
    forks: int = 0
    compactions: int = 0
    repeats: int = 0
    retries: int = 0
    abandoned: int = 0
    cached_tokens: int = 0
    input_tokens: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def refusals(self) -> list[Problem]:
        """Answers with a status outside 2xx."""
        return [problem for problem in self.problems if problem.kind == "status"]

    def __str__(self) -> str:
        """A summary and the first problems."""
        kinds = dict(Counter(problem.kind for problem in self.problems))
        head = (
            f"{self.wire}: {self.conversations} conversations, {self.requests} requests, {self.calls} calls, "
            f"{self.forks} forks, {self.compactions} compactions, {self.repeats} repeats, {self.retries} retries, "
            f"{self.abandoned} abandoned; {self.cached_tokens} of {self.input_tokens} tokens cached; "
            f"problems: {kinds or 'none'}"
        )
        return "\n".join([head, *(f"  {problem}" for problem in self.problems[:20])])


class _Run:
    """One fuzzing run."""

    def __init__(
        self, http: httpx.AsyncClient, wire: Wire, seed: int, tools: Sequence[ToolDef], options: Options
    ) -> None:
        self.http = http
        self.wire = wire
        self.seed = seed
        self.tools = list(tools)
        self.options = options
        self.report = Report(wire)

    def _client(self, number: int) -> Client:
        rng = random.Random(f"{self.seed}:{self.wire}:{number}")
        options = self.options
        model = rng.choice(options.models or MODELS[self.wire])
        held = [] if rng.random() < options.no_tools else rng.sample(self.tools, rng.randint(1, len(self.tools)))
        spare = held[: len(held) // 3]
        system = rng.choice(["", "Be brief.", "You are a helpful agent. " * 40])
        changing = bool(held) and rng.random() < options.changes
        native = len(held) > 3 and rng.random() < options.native
        client: Client
        if self.wire == "messages":
            traits = CLAUDE.get(model)
            changing = changing and bool(traits and traits.tool_changes)
            client = MessagesClient(model, held[len(spare) :] if changing else held, rng, system)
            if traits and traits.manual_thinking and rng.random() < 0.5:
                client.extra["thinking"] = {"type": "enabled", "budget_tokens": 1024}
            elif traits and traits.thinks_by_default and rng.random() < 0.5:
                display = rng.choice(["summarized", "omitted"])
                client.extra["thinking"] = {"type": "adaptive", "display": display}
            elif traits and traits.adaptive_thinking and rng.random() < 0.5:
                client.extra["thinking"] = {"type": "adaptive"}
        elif self.wire == "responses":
            changing = changing and model.startswith(("gpt-5.6", "gpt-6"))
            native = native and model.startswith(("gpt-5.4", "gpt-5.6", "gpt-6"))
            one = ResponsesClient(model, held[len(spare) :] if changing else held, rng, system)
            one.stored = rng.random() < options.stored
            client = one
            if rng.random() < 0.4 and not model.startswith("gpt-4"):
                effort = rng.choice(["low", "high"])
                client.extra["reasoning"] = {"effort": effort, "summary": "auto"}
        else:
            changing = native = False
            client = ChatClient(model, held, rng, system)
            if held and model.startswith(("gpt-5.4", "gpt-5.6", "gpt-6")):
                client.extra["reasoning_effort"] = "none"
        client.changing, client.native = changing, native
        client.spare = spare if changing else []
        if native:
            client.deferred = {tool.name for tool in client.tools[len(client.tools) // 2 :]}
            client.native = bool(client.deferred)
        return client

    def _choose(self, client: Client, body: Json) -> None:
        """Now and then a tool choice the model takes."""
        rng = client.rng
        if not body.get("tools") or rng.random() > self.options.choice:
            return
        free = [tool.name for tool in client.tools if tool.name not in client.deferred]
        if not free:
            return
        name = rng.choice(free)
        if client.wire == "messages":
            choices: list[Json] = [{"type": "auto", "disable_parallel_tool_use": True}, {"type": "none"}]
            traits = CLAUDE.get(client.model)
            if traits and traits.forced_choice and "thinking" not in body:
                choices += [{"type": "any"}, {"type": "tool", "name": name}]
            body["tool_choice"] = rng.choice(choices)
        elif client.wire == "responses":
            few = rng.sample(free, min(2, len(free)))
            entries: list[Json] = [{"type": "function", "name": one} for one in few]
            body["tool_choice"] = rng.choice(
                [
                    "auto",
                    "none",
                    "required",
                    {"type": "function", "name": name},
                    {"type": "allowed_tools", "mode": "auto", "tools": entries},
                ]
            )
            body["parallel_tool_calls"] = rng.random() < 0.5
        else:
            few = rng.sample(free, min(2, len(free)))
            entries = [{"type": "function", "function": {"name": one}} for one in few]
            body["tool_choice"] = rng.choice(
                [
                    "auto",
                    "none",
                    "required",
                    {"type": "function", "function": {"name": name}},
                    {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": entries}},
                ]
            )
            body["parallel_tool_calls"] = rng.random() < 0.5

    async def _send(self, client: Client, body: Json, number: int) -> Json | None:
        """Send until there is a good answer; None when the conversation cannot go on."""
        for attempt in range(self.options.retries + 1):
            if attempt:
                self.report.retries += 1
            self.report.requests += 1
            try:
                answer = await self.http.post(client.path, json=body, headers=client.headers)
                text = answer.text
            except httpx.HTTPError as error:
                self.report.problems.append(Problem("transport", number, f"{type(error).__name__}: {error}", body))
                continue
            if not 200 <= answer.status_code < 300:
                self.report.problems.append(
                    Problem("status", number, f"{answer.status_code} {text[:300]}", body, answer.status_code, text)
                )
                self._error_shape(client, answer, number)
                if answer.status_code in (408, 409, 429) or answer.status_code >= 500:
                    await asyncio.sleep(min(float(answer.headers.get("retry-after") or 0), 0.2))
                    continue
                return None
            kind = answer.headers.get("content-type", "")
            if ("text/event-stream" if body.get("stream") else "application/json") not in kind:
                self._violation(number, f"content-type {kind!r}", body, text)
            outcome = client.read(text, body)
            for problem in outcome.problems:
                self._violation(number, problem, body, text)
            if outcome.error is not None:
                self.report.problems.append(Problem("stream_error", number, json.dumps(outcome.error)[:300], body))
                continue
            if outcome.reply is not None:
                return outcome.reply
        return None

    def _violation(self, number: int, text: str, body: Any, answer: str = "") -> None:
        self.report.problems.append(Problem("violation", number, text, body, answer=answer))

    def _error_shape(self, client: Client, answer: httpx.Response, number: int) -> None:
        try:
            error = answer.json()
            inner = error["error"]
            fine = isinstance(inner["message"], str) and isinstance(inner["type"], str)
            fine = fine and (client.wire != "messages" or error.get("type") == "error")
        except (ValueError, KeyError, TypeError):
            fine = False
        if not fine:
            self._violation(
                number, f"error {answer.status_code} in another shape than the provider's", None, answer.text
            )

    async def _turn(self, client: Client, number: int) -> bool:
        """One user turn with all its tool rounds; False when the conversation is over."""
        client.ask()
        for round_number in range(self.options.rounds):
            body = client.body()
            if round_number == 0:
                self._choose(client, body)
            if client.rng.random() < self.options.stream:
                body["stream"] = True
                if client.wire == "chat" and client.rng.random() < 0.7:
                    body["stream_options"] = {"include_usage": True}
            reply = await self._send(client, body, number)
            if reply is not None and client.rng.random() < self.options.repeat:
                self.report.repeats += 1
                reply = await self._send(client, body, number)
            if reply is None:
                return False
            self._usage(reply)
            problems: list[str] = []
            try:
                state, calls = client.take(reply, problems, body)
            except (KeyError, TypeError, AttributeError) as error:
                problems.append(f"the answer lacks something: {error!r}")
                state, calls = "stop", []
            for problem in problems:
                self._violation(number, problem, body, json.dumps(reply, ensure_ascii=False))
            if state == "stop":
                return False
            if state == "end":
                return True
            self.report.calls += len(calls)
            if calls:
                client.answer(calls)
        return False

    def _usage(self, reply: Json) -> None:
        usage = reply.get("usage") or {}
        if "cache_read_input_tokens" in usage:
            cached = usage["cache_read_input_tokens"] or 0
            self.report.cached_tokens += cached
            self.report.input_tokens += (
                usage.get("input_tokens", 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
            )
            return
        details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
        self.report.cached_tokens += details.get("cached_tokens") or 0
        self.report.input_tokens += usage.get("input_tokens", usage.get("prompt_tokens", 0)) or 0

    async def converse(self, number: int) -> None:
        """One whole conversation."""
        client = self._client(number)
        self.report.conversations += 1
        for _ in range(client.rng.randint(1, self.options.turns * 2 - 1)):
            if client.history and client.rng.random() < self.options.fork:
                self.report.forks += 1
                await self._turn(client.fork(), number)
            if client.history and client.rng.random() < self.options.compact:
                self.report.compactions += 1
                client.compact()
            if not await self._turn(client, number):
                self.report.abandoned += 1
                return


async def fuzz_async(
    base_url: str,
    wire: Wire,
    *,
    conversations: int = 50,
    seed: int = 0,
    tools: Sequence[ToolDef] | None = None,
    options: Options = Options(),
    workers: int = 8,
    api_key: str = "sk-fuzz",
    headers: dict[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Report:
    """Drive `conversations` conversations and report every problem."""
    wanted = (
        {"authorization": f"Bearer {api_key}"}
        if wire != "messages"
        else {"x-api-key": api_key, "anthropic-version": "2023-06-01"}
    )
    limits = httpx.Limits(max_connections=workers * 2)
    async with httpx.AsyncClient(
        base_url=base_url,
        headers={**wanted, **(headers or {})},
        timeout=options.timeout,
        limits=limits,
        transport=transport,
    ) as http:
        run = _Run(http, wire, seed, tools if tools is not None else make_tools(12, seed), options)
        gate = asyncio.Semaphore(workers)

        async def one(number: int) -> None:
            async with gate:
                await run.converse(number)

        await asyncio.gather(*(one(number) for number in range(conversations)))
    return run.report


def fuzz(base_url: str, wire: Wire, **more: Any) -> Report:
    """The same from code that is not asynchronous."""
    return asyncio.run(fuzz_async(base_url, wire, **more))
