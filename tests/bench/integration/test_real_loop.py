"""The model of costs against the loop that it models: the SDKs, sessions whose tools run, and the provider's bytes."""

import json
import random
from collections.abc import Sequence
from typing import Any, cast

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, PromptCache, Reply, Request
from tests.kit.loopback.prompt_cache import CacheUse, Rendered
from tests.kit.prompt_bytes import ends_of, parts_of, tokens_of
from toolsearch import PassThrough, SessionOptions, Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.costs import DONE, SYSTEM, Played, Player
from toolsearch.bench.prices import CacheRules
from toolsearch.bench.prompts import PartCounter, cache_uses
from toolsearch.bench.ways import ANTICIPATED, EVERY, FOUND_BEFORE, Clock, WayName, engine_options, way_of, ways_of
from toolsearch.tokens import default_counter
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.formats import WireFormat

FOUND_BEFORE_COUNT = 5
ENDPOINTS = [
    Endpoint("anthropic", "claude-opus-5-5"),
    Endpoint("anthropic", "claude-haiku-4-5"),
    Endpoint("openai-responses", "gpt-5.6"),
    Endpoint("openai", "gpt-5.1"),
]
CASES = [(endpoint, way) for endpoint in ENDPOINTS for way in ways_of(endpoint)]
BY_ITSELF = CacheRules(least_tokens=0, step_tokens=1, lifetime_s=1_800)
AT_ENDS = CacheRules(least_tokens=0, step_tokens=1, lifetime_s=1_800, look_back=20)
BY_MARKS = CacheRules(automatic=False, least_tokens=0, step_tokens=1, lifetime_s=300, look_back=19)
RULES = {"anthropic": BY_MARKS, "openai": BY_ITSELF, "openai-responses": AT_ENDS}

VERBS = ["create", "list", "delete", "update", "archive", "send", "find", "merge", "export", "approve"]
THINGS = ["invoice", "ticket", "calendar event", "branch", "mail", "customer", "report", "room", "contract", "photo"]


class Canned:
    """A tool that answers by its arguments."""

    async def call(self, arguments: Any, context: Any) -> str:  # noqa: ARG002  as the protocol has it
        return result_of(arguments)


def result_of(arguments: Any) -> str:
    return f"done with {json.dumps(arguments, sort_keys=True)}"


def tools_of(draw: random.Random) -> list[Tool]:
    pairs = draw.sample([(verb, thing) for verb in VERBS for thing in THINGS], draw.randrange(5, 60))
    return [Tool(definition_of(verb, thing, draw), callback=Canned()) for verb, thing in pairs]


def definition_of(verb: str, thing: str, draw: random.Random) -> ToolDefinition:
    properties = {
        "id": {"type": "string", "description": f"Which {thing} it is."},
        "note": {"type": "string", "description": "Why. " * draw.randrange(1, 30)},
    }
    return ToolDefinition(
        f"{verb}_{thing}".replace(" ", "_"),
        f"{verb.capitalize()} a {thing}. " + "It may take a while. " * draw.randrange(4),
        {"type": "object", "properties": properties, "required": ["id"]},
    )


def conversation_of(tools: Sequence[Tool], draw: random.Random) -> Dialogue:
    def use() -> Use:
        tool = draw.choice(tools).definition
        words = tool.name.replace("_", " ")
        arguments = {"id": str(draw.randrange(1_000)), "note": "as the user has asked, für Zoë"}
        queries = (f"do something with {words.split()[-1]}", words)[draw.randrange(2) :]
        return Use(tool.name, arguments, result_of(arguments), queries)

    def step() -> Step:
        return Step(tuple({each.name: each for each in (use() for _ in range(draw.randrange(1, 4)))}.values()))

    return Dialogue(
        tuple(
            Turn(
                f"Please go on, number {draw.randrange(99)}.",
                tuple(step() for _ in range(draw.randrange(3))),
                draw.choice(["", "It is all done."]),
            )
            for _ in range(draw.randrange(1, 7))
        )
    )


class RealLoop:
    """The user's loop. The model answers as *played* says, and the tools run."""

    def __init__(self, api: LoopbackApi, endpoint: Endpoint, played: Played, clock: Clock) -> None:
        self._api = api
        self._endpoint = endpoint
        self._clock = clock
        self._claude = AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0)
        self._gpt = AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0)
        self._played = list(zip(played.prompts, played.replies, strict=True))

    async def run(self, conversation: Dialogue, engine: ToolSearch, way: WayName) -> None:
        api, clock = self._api, self._clock
        modes = [mode for mode in capabilities_of(self._endpoint).modes if mode in (way, "append", "messages")]
        session = engine.session("real", exposure=way if way in modes else modes[0])
        messages: list[Any] = []
        for turn in conversation.turns:
            messages.append({"role": "user", "content": turn.user} | self._typed())
            if way == ANTICIPATED:
                endpoint = self._endpoint
                messages += session.begin_turn(
                    turn.user, cast("WireFormat", endpoint.wire_format), model=endpoint.model
                )
            found = [each.name for each in engine.search(turn.user, limit=FOUND_BEFORE_COUNT)]
            while True:
                prompt, calls = self._played.pop(0)
                clock.now_s = prompt.at_s
                said = [Call(call.name, self._arguments(call.arguments), id=call.id) for call in calls]
                api.script(Reply(calls=said) if said else Reply(turn.answer or DONE))
                request = session.request(cast("WireFormat", self._endpoint.wire_format), model=self._endpoint.model)
                if way == FOUND_BEFORE:
                    request["tools"] = [entry for entry in request["tools"] if _name(entry) in found]
                reply, history = await self._send(request, messages)
                messages += history
                results = await session.execute(reply)
                messages += results
                if not results:
                    break
            session.end_turn()

    def _typed(self) -> dict[str, str]:
        return {"type": "message"} if self._endpoint.wire_format == "openai-responses" else {}

    def _arguments(self, arguments: Any) -> Any:
        if self._endpoint.wire_format == "openai":
            return json.dumps(arguments)
        return arguments

    async def _send(self, request: dict[str, Any], messages: list[Any]) -> tuple[Any, list[Any]]:
        """What is long goes around the types of the SDKs, which they follow through each part of each request."""
        tools = request.pop("tools")
        around: dict[str, Any] = {"tools": tools} if tools else {}
        match self._endpoint.wire_format:
            case "anthropic":
                around |= {"messages": messages}
                answer: Any = await self._claude.messages.create(
                    max_tokens=1_000, system=SYSTEM, messages=(), extra_body=around, **request
                )
                said = [block.model_dump(exclude_none=True) for block in answer.content]
                return answer, [{"role": "assistant", "content": said}]
            case "openai":
                around |= {"messages": [{"role": "system", "content": SYSTEM}, *messages]}
                answer = await self._gpt.chat.completions.create(messages=(), extra_body=around, **request)
                return answer, [answer.choices[0].message.model_dump(exclude_none=True)]
            case _:
                around |= {"input": messages}
                answer = await self._gpt.responses.create(
                    instructions=SYSTEM, input=[], store=False, extra_body=around, **request
                )
                return answer, [item.model_dump(exclude_none=True) for item in answer.output]


def _name(entry: dict[str, Any]) -> str:
    return str(entry.get("name") or entry["function"]["name"])


def held(endpoint: Endpoint, played: Played, requests: Sequence[Request]) -> list[CacheUse]:
    """What a provider's cache makes of what it received."""
    clock = Clock()
    cache = PromptCache(clock)
    for prompt, request in zip(played.prompts, requests, strict=True):
        clock.now_s = prompt.at_s
        parts = parts_of(request)
        marks = frozenset({len(parts) - 1}) if endpoint.wire_format == "anthropic" else None
        cache.use(request.path, endpoint.model, Rendered(parts, marks, ends_of(request)))
    return cache.uses


@pytest.fixture
def counter() -> PartCounter:
    return PartCounter(default_counter())


@pytest.mark.parametrize(("endpoint", "way"), CASES, ids=lambda value: getattr(value, "model", value))
@pytest.mark.parametrize("seed", range(10))  # 200 conversations
async def test_the_model_counts_each_request_as_the_provider_received_it(
    endpoint: Endpoint, way: WayName, seed: int, api: LoopbackApi, counter: PartCounter
) -> None:
    draw = random.Random(f"{endpoint} {way} {seed}")  # noqa: S311
    tools = tools_of(draw)
    conversation = conversation_of(tools, draw)
    clock = Clock()
    with ToolSearch(tools, encoder=None, **engine_options(clock)) as engine:
        player = Player(endpoint, clock, counter)
        played = await player.play(conversation, way_of(way, engine, endpoint, found_before=FOUND_BEFORE_COUNT))

    standing = Clock()
    whole = PassThrough(max_tools=1_000, max_tokens=1_000_000) if way in (EVERY, FOUND_BEFORE) else PassThrough(0)
    options = SessionOptions(pass_through=whole)
    with ToolSearch(tools, encoder=None, options=options, clock=standing) as engine:
        await RealLoop(api, endpoint, played, standing).run(conversation, engine, way)

    assert api.refusals == []
    received = [parts_of(each) for each in api.requests]
    assert [[part.tokens for part in prompt.parts] for prompt in played.prompts] == [
        [tokens_of(part) for part in parts] for parts in received
    ]
    uses = cache_uses(played.prompts, RULES[endpoint.wire_format])
    assert [(use.prompt, use.read, use.written) for use in uses] == [
        (use.prompt, use.read, use.written) for use in held(endpoint, played, api.requests)
    ]
