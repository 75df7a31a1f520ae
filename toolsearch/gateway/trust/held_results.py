"""Results that wait for an operator, who looks at each and releases it to its caller or discards it.

They are kept in memory, within bounds, until their caller has them. The caller makes the same call again, which is not
sent to the server again. A client that follows tasks waits for the result of its task.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

from mcp import MCPError

from toolsearch.chores import is_set_within
from toolsearch.errors import ConflictError, ToolExecutionError, UnknownRecordError, shown_name
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.trust.verdicts import pin_of
from toolsearch.scanning.texts import visible
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import without_round
from toolsearch.wire.mcp.requests import target_of
from toolsearch.wire.mcp.tasks import augmented

MAX_HELD: Final = 20  # results of one caller
MAX_HELD_IN_ALL: Final = 200
MAX_CHARACTERS: Final = 20_000_000  # characters of all kept results, as JSON
KEPT_S: Final = 3_600.0  # from the call to the decision, and from the decision to the next call
ResultAction: TypeAlias = Literal["show", "release", "discard"]
Outcome: TypeAlias = Mapping[str, Any] | MCPError  # the server's result, or the error by which it refused the request


class Note(Protocol):
    """Records in the audit what *who* is about to do. Raises StorageError: it must not be done then."""

    async def __call__(self, who: str, action: str, subject: str, *, server: str = "") -> None: ...


class Decision(Enum):
    WAITS = "waits"
    RELEASED = "released"
    DISCARDED = "discarded"


@dataclass(eq=False, slots=True)
class HeldResult:
    """One result.

    who      the principal whose call it was
    user     tells callers apart who may not see each other's results
    request  a digest of the call
    name     of the tool or prompt, or the URI of the resource
    found    the rules of the scan that found something
    since_s  the time of the call or, later, of the decision
    """

    who: str
    user: tuple[str, str, str]
    request: str
    server: str
    name: str
    found: tuple[str, ...]
    outcome: Outcome
    since_s: float
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    decision: Decision = Decision.WAITS
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        written = self.outcome.error.model_dump() if isinstance(self.outcome, MCPError) else self.outcome
        self.text = json.dumps(written, ensure_ascii=False, indent=1, default=str)

    def shown(self) -> JsonObject:
        """What operators see before they look at it."""
        return {
            "id": self.id,
            "principal": self.who,
            "server": self.server,
            "name": self.name,
            "found": [*self.found],
            "characters": len(self.text),
        }

    @property
    def shown_name(self) -> str:
        return shown_name(self.name)

    @property
    def reasons(self) -> str:
        return ", ".join(self.found)

    @property
    def subject(self) -> str:
        """The name of the result in the audit."""
        return f"{self.shown_name} {self.id}"


class HeldResults:
    """To be used from one event loop.

    note   records each result that is held, and what operators do with it
    clock  gives seconds
    """

    def __init__(self, note: Note | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._note = note or _no_note
        self._clock = clock
        self._kept: dict[str, HeldResult] = {}

    def of_request(self, caller: Caller, server: str, method: str, params: Mapping[str, Any]) -> HeldResult | None:
        """The result of the same request of the same user, if one is kept: its client may have connected anew."""
        if self.is_empty:
            return None
        asked = caller.user, _digest(server, method, params)
        return next((each for each in self._kept.values() if (each.user, each.request) == asked), None)

    async def hold(
        self,
        caller: Caller,
        server: str,
        method: str,
        params: Mapping[str, Any],
        outcome: Outcome,
        found: Sequence[str],
    ) -> HeldResult:
        """Keep *outcome* for an operator. Raises ToolExecutionError if there is no room, and StorageError."""
        held = HeldResult(
            caller.grant.principal.id,
            caller.user,
            _digest(server, method, params),
            server,
            target_of(params),
            tuple(found),
            outcome,
            self._clock(),
        )
        self._forget_old()
        if not self._has_room_for(held):
            raise _withheld(
                f"The result of {held.shown_name} is withheld: the scan found {held.reasons} in it, and there is no "
                "room to keep the result. Ask an operator to decide about the results that wait, and call again"
            )
        self._kept[held.id] = held  # kept before it is noted, so that others meanwhile find no room
        try:
            await self._note(held.who, "hold result", held.subject, server=server)
        except BaseException:
            self._kept.pop(held.id, None)
            raise
        return held

    async def outcome_of(self, held: HeldResult, client: Downstream) -> Outcome:
        """The outcome of *held*, which is forgotten then. A client that follows tasks gets a task, and waits.

        Raises ToolExecutionError while no operator has released it.
        """
        if held.decision is Decision.WAITS and client.as_task() is not None:
            await is_set_within(held.decided, max(0.0, held.since_s + KEPT_S - self._clock()))
        if held.decision is Decision.WAITS:
            raise _withheld(
                f"The result of {held.shown_name} waits for an operator as {held.id}: the scan found {held.reasons} in "
                "it. Make the same call again later: you get the result once an operator has released it. The call "
                "does not run a second time"
            )
        self._kept.pop(held.id, None)
        if held.decision is Decision.DISCARDED:
            raise _withheld(f"An operator has discarded the result {held.id} of {held.shown_name}. Go on without it")
        return held.outcome

    @property
    def is_empty(self) -> bool:
        """Whether no result is kept: none waits for an operator, and none for its caller."""
        self._forget_old()
        return not self._kept

    def waiting(self) -> list[HeldResult]:
        """Those about which nobody has decided, the oldest first."""
        self._forget_old()
        return [each for each in self._kept.values() if each.decision is Decision.WAITS]

    async def act(self, action: ResultAction, held_id: str, who: str) -> JsonObject:
        """Have *who* look at the result of that id, whose ``text`` is returned, release it to its caller, or discard
        it.

        Raises UnknownRecordError if it is not kept any more, ConflictError if it is decided, and StorageError.
        """
        held = self._waiting(held_id)
        await self._note(who, f"{action} result", held.subject, server=held.server)
        if action == "show":
            return {"text": await asyncio.to_thread(visible, held.text)}
        held = self._waiting(held_id)  # another operator may have been faster
        held.decision = {"release": Decision.RELEASED, "discard": Decision.DISCARDED}[action]
        held.since_s = self._clock()
        held.decided.set()
        return {}

    def forget(self, server: str) -> None:
        """Discard what is kept of *server*: another one may have its name next."""
        for held in [each for each in self._kept.values() if each.server == server]:
            del self._kept[held.id]
            held.decision = Decision.DISCARDED
            held.decided.set()

    def _waiting(self, held_id: str) -> HeldResult:
        self._forget_old()
        held = self._kept.get(held_id)
        if held is None:
            raise UnknownRecordError("held result", held_id)
        if held.decision is not Decision.WAITS:
            raise ConflictError("held result", held_id)
        return held

    def _has_room_for(self, held: HeldResult) -> bool:
        of_user = sum(each.user == held.user for each in self._kept.values())
        characters = sum(len(each.text) for each in self._kept.values()) + len(held.text)
        return of_user < MAX_HELD and len(self._kept) < MAX_HELD_IN_ALL and characters <= MAX_CHARACTERS

    def _forget_old(self) -> None:
        oldest_s = self._clock() - KEPT_S
        for each in [each for each in self._kept.values() if each.since_s <= oldest_s]:
            del self._kept[each.id]


async def _no_note(who: str, action: str, subject: str, *, server: str = "") -> None:
    """There is no audit."""


def _digest(server: str, method: str, params: Mapping[str, Any]) -> str:
    """The same for two requests that ask the same, whatever the client says beside."""
    return pin_of([server, method, augmented(without_round(params), is_wanted=False)])


def _withheld(message: str) -> ToolExecutionError:
    return ToolExecutionError(message, is_held=True)
