"""The user's loop, as the README has it, for each of the three APIs, with a model that follows the script.

The model knows what it may call from the request alone, as a real one does: by its list, by messages, by references.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.clock import Clock
from tests.kit.conversation.script import CHANGED, TURNS, Act, Event, Find, Read, Turn
from tests.kit.conversation.tools import AWAY, catalog_of, change, remove_server
from tests.kit.loopback import Call, LoopbackApi, PromptCache, Reply, available_tools
from tests.kit.loopback.prompt_cache import CacheUse
from toolsearch import Budget, PassThrough, Session, SessionOptions, SessionStore, Tool, ToolSearch
from toolsearch.storage.sqlite.stores import SqliteSessionPersistence
from toolsearch.wire.capabilities import RevealSetting
from toolsearch.wire.formats import WireFormat

SEARCH, READ, CALL = "toolSearchTool", "readSkill", "callTool"
SYSTEM = "You help with the work of an office. Search for a tool before you say that there is none."
TOOLS_KEPT = 8  # between turns, so that some are evicted
_REPLY_S, _TURN_S, _PAUSE_S = 5, 60, 26 * 3_600.0
Send = Callable[[Session, list[Any]], Awaitable[tuple[Any, list[Any]]]]


@dataclass(frozen=True)
class Conversation:
    """*every_tool* lists all tools in each request, without a search tool. With *anticipates*, each turn begins with
    what the user says.

    *is_typed* gives everything to the SDK's method by its arguments, as users do. Else what is large goes around the
    types of these, which the SDKs follow through each part of each request: that takes ten times as long as all else.
    """

    format: WireFormat
    model: str
    exposure: RevealSetting = "auto"
    every_tool: bool = False
    is_typed: bool = False
    anticipates: bool = False
    turns: Sequence[Turn] = TURNS
    skills: Sequence[Tool] = ()


@dataclass
class Played:
    """*uses* has a row for each request, *ran* a tool's name for each time that it ran."""

    ran: list[str] = field(default_factory=list)
    uses: list[CacheUse] = field(default_factory=list)
    searches: int = 0
    evicted: int = 0
    breaks: int = 0
    anticipated: int = 0


class _Office:
    """What the process of an agent holds, and what befalls it."""

    def __init__(self, conversation: Conversation, folder: Path, clock: Clock, played: Played) -> None:
        self._conversation = conversation
        self._path = folder / "sessions.db"
        self._clock = clock
        self._played = played
        self._open = ExitStack()
        self._is_server_away = False
        self._start()

    def _start(self) -> None:
        conversation = self._conversation
        kept = self._open.enter_context(SqliteSessionPersistence(self._path))
        self._catalog = catalog_of(self._played.ran.append, without=AWAY if self._is_server_away else "")
        self._catalog.add(*conversation.skills)
        whole = PassThrough(max_tools=10_000, max_tokens=10_000_000) if conversation.every_tool else PassThrough(0)
        options = SessionOptions(
            exposure=conversation.exposure,
            budget=Budget(max_tools=TOOLS_KEPT),
            pass_through=whole,
        )
        store = SessionStore(persistence=kept, budget=options.budget, clock=self._clock)
        engine = ToolSearch(self._catalog, encoder=None, sessions=store, options=options, clock=self._clock)
        self._open.enter_context(engine)
        self.session = engine.session("office")

    def let_happen(self, event: Event) -> None:
        match event:
            case "server goes away":
                self._is_server_away = True
                remove_server(self._catalog, AWAY)
            case "definition changes":
                change(self._catalog, CHANGED)
            case "skills go away":
                self._catalog.remove(*self._catalog.contents)
            case "restart":
                self.close()
                self._start()
            case "pause":
                self._clock.now_s += _PAUSE_S
            case "":
                pass

    def close(self) -> None:
        self._open.close()


class _Model:
    """Follows one turn of the script after the other."""

    def __init__(self, api: LoopbackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._replies: list[tuple[Act, ...]] = []

    def begin(self, turn: Turn) -> None:
        self._replies = list(turn.replies)

    def answer(self, _body: dict[str, Any]) -> Reply:
        self._clock.now_s += _REPLY_S
        available = available_tools(self._api.requests[-1])
        while self._replies:
            calls = [
                _call(act, available)
                for act in self._replies.pop(0)
                if not isinstance(act, Find) or SEARCH in available
            ]
            if calls:
                return Reply(calls=calls, thinking=f"I call {len(calls)}.")
        return Reply("That is done, as far as I can see.", thinking="There is nothing left to do.")


def _call(act: Act, available: set[str]) -> Call:
    if isinstance(act, Find):
        return Call(SEARCH, {"query": act.query})
    if isinstance(act, Read):
        return Call(READ, {"name": act.name, **({"file": act.file} if act.file else {})})
    arguments = {"id": "7", "note": "as the user has asked"}
    if act.name not in available and CALL in available:
        return Call(CALL, {"name": act.name, "arguments": arguments})
    return Call(act.name, arguments)


async def play(conversation: Conversation, api: LoopbackApi, folder: Path) -> Played:
    """Play all turns; *api* holds what was sent, and *folder* the database of sessions."""
    clock, played = Clock(1_000_000.0), Played()
    api.cache = PromptCache(clock)
    model = _Model(api, clock)
    api.answer = model.answer
    office = _Office(conversation, folder, clock, played)
    messages: list[Any] = []
    async with AsyncExitStack() as clients:
        clients.callback(office.close)
        send = await _sender(conversation, api, clients)
        for turn in conversation.turns:
            clock.now_s += _TURN_S
            office.let_happen(turn.event)
            model.begin(turn)
            messages.append({"role": "user", "content": turn.said})
            if conversation.anticipates:
                messages += office.session.begin_turn(turn.said, conversation.format, model=conversation.model)
            while True:
                reply, said = await send(office.session, messages)
                messages.extend(said)
                results = await office.session.execute(reply)
                messages.extend(results)
                if not results:
                    break
            office.session.end_turn()
        state = office.session.state
        played.uses = api.cache.uses
        played.searches, played.evicted = state.counters.searches, state.discovered.evicted
        savings = office.session.savings()
        played.breaks, played.anticipated = savings.cache_breaks, savings.anticipated
    return played


async def _sender(conversation: Conversation, api: LoopbackApi, clients: AsyncExitStack) -> Send:
    """What sends a request and gives the reply, and what to append to the conversation for it."""
    if conversation.format == "anthropic":
        claude = await clients.enter_async_context(AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0))
        return _Messages(claude, conversation).send
    gpt = await clients.enter_async_context(AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0))
    return (_Chat if conversation.format == "openai" else _Responses)(gpt, conversation).send


@dataclass(frozen=True)
class _Sender:
    client: Any
    conversation: Conversation

    def request(self, session: Session, **large: Any) -> dict[str, Any]:
        conversation = self.conversation
        arguments = session.request(conversation.format, model=conversation.model, cache_prompt=True) | large
        if self.conversation.is_typed:
            return arguments
        around = {key: arguments.pop(key) for key in ("tools", *large)}
        return {**arguments, **dict.fromkeys(large, ()), "extra_body": around}


class _Chat(_Sender):
    async def send(self, session: Session, messages: list[Any]) -> tuple[Any, list[Any]]:
        system = {"role": "system", "content": SYSTEM}
        asked = self.request(session, messages=[system, *messages])
        reply = await self.client.chat.completions.create(**asked)
        return reply, [reply.choices[0].message.model_dump(exclude_none=True)]


class _Responses(_Sender):
    async def send(self, session: Session, messages: list[Any]) -> tuple[Any, list[Any]]:
        asked = self.request(session, input=messages)
        include = ["reasoning.encrypted_content"]
        reply = await self.client.responses.create(instructions=SYSTEM, store=False, include=include, **asked)
        return reply, [item.model_dump(exclude_none=True) for item in reply.output]


class _Messages(_Sender):
    async def send(self, session: Session, messages: list[Any]) -> tuple[Any, list[Any]]:
        asked = self.request(session, messages=messages)
        reply = await self.client.messages.create(max_tokens=1_000, system=SYSTEM, **asked)
        return reply, [
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
        ]
