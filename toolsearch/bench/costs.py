"""Plays conversations and counts their costs: tokens, money, rounds, and turns that failed because a tool was missing.

No provider is asked, and no tool runs.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolsearch.bench.conversations import Dialogue, Pace, Turn, Use
from toolsearch.bench.prices import Prices, cost_of
from toolsearch.bench.prompts import BilledPrompt, CacheUse, Part, PartCounter, cache_uses
from toolsearch.bench.ways import Clock, Way
from toolsearch.discovery.search_tool import MAX_QUERIES
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.formats import Entries, prompt_module, render_messages
from toolsearch.wire.messages import AssistantMessage, UserMessage

SYSTEM = "You are a helpful assistant."
DONE = "That is done."
_NAMES = re.compile("[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Played:
    """A conversation, request by request.

    missed         the uses that the model had no tool for, with the number of their turn
    replies        the calls in each of the model's replies, a row for each of *prompts*
    has_own_front  whether the first list is of no other conversation, so that no other has it cached
    """

    prompts: tuple[BilledPrompt, ...]
    replies: tuple[tuple[ToolCall, ...], ...] = ()
    missed: tuple[tuple[int, Use], ...] = ()
    has_own_front: bool = False


@dataclass(frozen=True, slots=True)
class NextReply:
    """The model's next reply: uses of tools, with a text, or queries. If there are neither, it is an answer."""

    uses: Sequence[Use] = ()
    queries: Sequence[str] = ()
    text: str = ""


class Model:
    """Follows one turn. It searches for all unknown tools that it needs at once. If an answer only names a tool, it
    asks for it by name. If its last query does not find a tool, it does without.
    """

    def __init__(self, turn: Turn, way: Way) -> None:
        self.missed: list[Use] = []
        self._way = way
        self._steps = deque(turn.steps)
        self._waiting: list[Use] = []
        self._text = ""
        self._tried = Counter[str]()
        self._named: set[str] = set()
        self._selected: set[str] = set()

    def read(self, answer: str) -> None:
        """The answer to a search."""
        self._named |= set(_NAMES.findall(answer))

    def reply(self) -> NextReply:
        """To a request with the way's list as it is now."""
        while self._waiting or self._steps:
            if not self._waiting:
                step = self._steps.popleft()
                self._waiting, self._text = list(step.calls), step.text
            unknown = [use for use in self._waiting if not self._way.can_call(use.name)]
            queries = self._queries(unknown)
            if queries:
                return NextReply(queries=queries)
            uses = [use for use in self._waiting if use not in unknown]
            self.missed += unknown
            self._waiting = []
            if uses:
                return NextReply(uses=uses, text=self._text)
        return NextReply()

    def _queries(self, unknown: Sequence[Use]) -> list[str]:
        """The next query for each unknown tool that has one left."""
        if not self._way.can_search:
            return []
        names = list(dict.fromkeys(use.name for use in unknown))
        by_name = [name for name in names if name in self._named and name not in self._selected][:MAX_QUERIES]
        if by_name:
            self._selected |= set(by_name)
            return [f"select:{','.join(by_name)}"]
        queries = dict[str, None]()
        for use in unknown:
            tried = self._tried[use.name]
            if tried < len(use.queries) and len(queries) < MAX_QUERIES:
                self._tried[use.name] += 1
                queries[use.queries[tried]] = None
        return list(queries)


@dataclass
class Player:
    """Plays conversations with *endpoint*. *clock* is the engine's clock."""

    endpoint: Endpoint
    clock: Clock
    counter: PartCounter
    pace: Pace = field(default_factory=Pace)

    async def play(self, conversation: Dialogue, way: Way) -> Played:
        """All of *conversation*, from the beginning of the clock."""
        self.clock.now_s = 0.0
        recording = _Recording(self, way, conversation.system or SYSTEM)
        for number, turn in enumerate(conversation.turns):
            if number:
                self.clock.now_s += self.pace.turn_s
            await recording.play(turn)
        return Played(tuple(recording.prompts), tuple(recording.replies), tuple(recording.missed), way.has_own_front)


class _Recording:
    def __init__(self, player: Player, way: Way, system: str) -> None:
        self.prompts: list[BilledPrompt] = []
        self.replies: list[tuple[ToolCall, ...]] = []
        self.missed: list[tuple[int, Use]] = []
        self._player = player
        self._way = way
        self._system = system
        self._wire = prompt_module(player.endpoint.wire_format)
        self._entries: Entries = []
        self._front: tuple[Sequence[Mapping[str, object]], list[Part]] | None = None
        self._turns = 0
        self._calls = 0

    async def play(self, turn: Turn) -> None:
        self._entries += self._rendered(UserMessage(turn.user))
        self._entries += self._way.hear(turn.user)
        model = Model(turn, self._way)
        while await self._request(model, turn):
            self._player.clock.now_s += self._player.pace.reply_s
        self.missed += [(self._turns, use) for use in model.missed]
        self._way.end_turn()
        self._turns += 1

    async def _request(self, model: Model, turn: Turn) -> bool:
        """Ask the model once. Return whether it has called anything, so that it has to be asked again."""
        tools, reply = self._way.tools(), model.reply()
        calls, answers = self._calls_of(reply)
        said = self._way.write(calls, reply.text) if calls else self._rendered(AssistantMessage(turn.answer or DONE))
        self._record(tools, said, queries=len(reply.queries))
        self.replies.append(tuple(calls))
        self._entries += said
        if calls:
            results = await self._way.execute(said, answers)
            self._entries += results
            if reply.queries:
                model.read(json.dumps(results))
        return bool(calls)

    def _calls_of(self, reply: NextReply) -> tuple[list[ToolCall], Mapping[str, str] | None]:
        if reply.queries:
            return [ToolCall(self._new_id(), TOOL_NAME, {"queries": list(reply.queries)})], None
        calls = [self._way.call(use, self._new_id()) for use in reply.uses]
        return calls, {call.id: use.result for call, use in zip(calls, reply.uses, strict=True)}

    def _record(self, tools: Sequence[Mapping[str, object]], said: Entries, *, queries: int) -> None:
        player, counter = self._player, self._player.counter
        if self._front is None or self._front[0] is not tools:  # thousands of definitions are counted once
            self._front = tools, counter.parts(self._wire.front_parts(tools, self._system))
        parts = [*self._front[1], *counter.parts(self._wire.message_parts(self._entries, tools))]
        written = counter.tokens(said)
        self.prompts.append(
            BilledPrompt(tuple(parts), len(self._front[1]), player.clock.now_s, self._turns, written, queries)
        )

    def _rendered(self, message: UserMessage | AssistantMessage) -> Entries:
        return render_messages([message], self._player.endpoint.wire_format)

    def _new_id(self) -> str:
        self._calls += 1
        return f"call_{self._calls}"


Caching: TypeAlias = Literal["none", "cold", "warm"]


"""What of prompts is cached: nothing; what the conversation itself has sent; also its front, by other conversations."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one or more conversations. Tokens are the sum of all requests.

    turns        turns of users
    failed       turns in which the model lacked a tool that it needed
    requests     requests to the model; *search_rounds* of them did nothing but search
    searches     queries
    output       tokens written by the model
    dollars      dollars at the chosen prices
    """

    turns: int = 0
    failed: int = 0
    requests: int = 0
    search_rounds: int = 0
    searches: int = 0
    prompt: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    dollars: float = 0.0

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written

    @property
    def dollars_per_done(self) -> float | None:
        """Dollars for each turn that did not fail; None if all failed."""
        done = self.turns - self.failed
        return self.dollars / done if done else None

    def __add__(self, other: Costs) -> Costs:
        both: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in Costs.__slots__}
        return Costs(**both)


def costs_by_turn(played: Played, prices: Prices, caching: Caching) -> list[Costs]:
    """The costs of *played* up to the end of each turn."""
    is_warm = caching == "warm" and not played.has_own_front
    uses = cache_uses(played.prompts, None if caching == "none" else prices.cache, is_warm=is_warm)
    failed = {turn for turn, _ in played.missed}
    totals: list[Costs] = []
    for number in range(1 + max((prompt.turn for prompt in played.prompts), default=-1)):
        requests = [(prompt, use) for prompt, use in zip(played.prompts, uses, strict=True) if prompt.turn == number]
        of_turn = Costs(
            turns=1,
            failed=int(number in failed),
            requests=len(requests),
            search_rounds=sum(prompt.is_search for prompt, _ in requests),
            searches=sum(prompt.queries for prompt, _ in requests),
            prompt=sum(use.prompt for _, use in requests),
            read=sum(use.read for _, use in requests),
            written=sum(use.written for _, use in requests),
            output=sum(prompt.written for prompt, _ in requests),
            dollars=sum(_dollars(prices, use, prompt.written) for prompt, use in requests),
        )
        totals.append(totals[-1] + of_turn if totals else of_turn)
    return totals


def total(costs: Iterable[Costs]) -> Costs:
    return sum(costs, Costs())


def cheaper_from(ours: Sequence[float], theirs: Sequence[float]) -> int | None:
    """The first place from which *ours* stays below *theirs* to the end; None if there is none."""
    place: int | None = None
    for at, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        if mine >= their:
            place = None
        elif place is None:
            place = at
    return place


def share_where_equal(ours: tuple[float, float], theirs: tuple[float, float]) -> float | None:
    """The share of conversations with a warm front at which both cost the same. Each is a pair: the cold and the warm
    cost.

    None if one of them is cheaper at every share.
    """
    cold, warm = ours[0] - theirs[0], ours[1] - theirs[1]
    return cold / (cold - warm) if cold * warm < 0 else None


def _dollars(prices: Prices, use: CacheUse, output: int) -> float:
    return cost_of(prices, uncached=use.uncached, read=use.read, written=use.written, output=output)
