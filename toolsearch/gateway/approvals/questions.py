"""Asks a person at the client whether a held tool may be used, when their model calls it by name.

Only those are asked who may approve, over clients that show forms. The question shows the whole change; the model can
neither see nor answer it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from mcp import MCPError

from toolsearch.documents.json_values import as_object
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.approvals.decisions import Decisions
from toolsearch.gateway.approvals.waiting import Waiting, person_of
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.calls import ClientCall
from toolsearch.gateway.proxy.suspended_calls import Binding, StateSeal, SuspendedCalls
from toolsearch.gateway.trust.verdicts import ReviewReason
from toolsearch.recent import Recent
from toolsearch.scanning.texts import printable
from toolsearch.tools.json_types import Json
from toolsearch.upstreams.interface import Downstream
from toolsearch.upstreams.talkback import ASK_TIMEOUT_S
from toolsearch.wire.mcp.eras import Era, answers_in, check_askable, state_in, without_answers
from toolsearch.wire.mcp.requests import ELICIT, asks_for_input

logger = logging.getLogger(__name__)
_LONGEST: Final = 6_000  # characters of a question; a longer change is shown by the command and on the page
_LONGEST_LABEL: Final = 100
_MOST_REMEMBERED: Final = 1_000  # questions that nobody has to answer again
_KEEP: Final = "keep it held"
_APPROVE: Final = "approve"
_REFUSE: Final = "refuse it for everybody"
_DECISION: Final[Json] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": [_KEEP, _APPROVE, _REFUSE], "default": _KEEP},
    },
    "required": ["decision"],
}  # a client that fills in forms by itself sends the default, or the first choice
_WHY: Final = {
    ReviewReason.NEW: "is new",
    ReviewReason.CHANGED: "is not what was approved",
    ReviewReason.SUSPICIOUS: "looks suspicious",
    ReviewReason.WITHDRAWN: "was approved, and somebody has withdrawn that",
}


class Asked(NamedTuple):
    """*result* is a question to be answered first; None: the call goes on with *params*."""

    params: Mapping[str, Any]
    result: dict[str, Any] | None = None


class ApprovalQuestions:
    """One question at a time is asked about one definition of one principal. After any answer, that principal is not
    asked about the definition again. Only a choice to approve or to refuse is a decision: a definition that somebody
    has refused is not asked about at all.
    """

    def __init__(self, decisions: Decisions, seal: StateSeal, *, ask_timeout_s: float = ASK_TIMEOUT_S) -> None:
        self._decisions = decisions
        self._seal = seal
        self._ask_timeout_s = ask_timeout_s
        self._suspended = SuspendedCalls(seal)
        self._settled = Recent[tuple[str, str], None](_MOST_REMEMBERED)  # owners and pins that were asked about

    async def put(self, call: ClientCall) -> Asked:
        """Ask about the held tool that *call* names, if its caller may approve and can be asked."""
        client, caller = call.downstream, call.caller
        binding = Binding(caller.owner, "", ELICIT, call.call.name)
        state = self._state(binding, call.params)
        if state is not None:
            answers = answers_in(call.params) or {}
            return _asked(without_answers(call.params), await self._suspended.go_on(binding, state, answers, client))
        waiting = await self._askable(call)
        if waiting is None:
            return Asked(call.params)
        if caller.era is Era.LEGACY:
            return _asked(call.params, await self._ask(waiting, caller, client))
        ask = partial(self._ask, waiting, caller)
        return _asked(call.params, await self._suspended.begin(binding, ask, client))

    async def aclose(self) -> None:
        await self._suspended.aclose()

    def _state(self, binding: Binding, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The state of an earlier question about this tool, which the client brings back."""
        sealed = state_in(params)
        try:
            return self._seal.unseal(binding, sealed) if isinstance(sealed, str) else None
        except MCPError:
            return None  # it belongs to a question of the server

    async def _askable(self, call: ClientCall) -> Waiting | None:
        """What to ask about, if the caller can be asked, was not before, and can be shown the whole change."""
        if not call.caller.may_approve:
            return None
        try:
            check_askable(call.downstream.capabilities, ELICIT, {"mode": "form"})
        except MCPError:
            return None
        waiting = await self._decisions.waiting_of(call.call.name, call.caller.principal.reach)
        if waiting is None or waiting.held.why not in _WHY or len(question_about(waiting)) > _LONGEST:
            return None
        return None if (call.caller.owner, waiting.held.pin) in self._settled else waiting

    async def _ask(self, waiting: Waiting, caller: Caller, client: Downstream) -> dict[str, Any]:
        asked = (caller.owner, waiting.held.pin)
        self._settled.put(asked, None)  # set before the question, so that calls meanwhile ask nothing
        form = {"mode": "form", "message": question_about(waiting), "requestedSchema": _DECISION}
        try:
            async with asyncio.timeout(self._ask_timeout_s):
                answer = await client.ask(ELICIT, form)
        except (MCPError, TimeoutError):
            self._settled.pop(asked)  # nobody has seen it, or nobody was there
            return {}
        except asyncio.CancelledError:
            self._settled.pop(asked)
            raise
        chosen = (as_object(answer.get("content")) or {}).get("decision")
        if answer.get("action") != "accept" or chosen not in (_APPROVE, _REFUSE):
            return {}  # also where a client without a person declines, or sends the default
        try:
            await self._decisions.decide(waiting, person_of(caller), is_approved=chosen == _APPROVE)
        except ToolSearchError as error:  # it stays held, which the call will say
            logger.warning("the decision about %s could not be kept: %s", waiting.held.label, error)
        return {}


def _asked(params: Mapping[str, Any], answer: dict[str, Any]) -> Asked:
    return Asked(params, answer if asks_for_input(answer) else None)


def question_about(waiting: Waiting) -> str:
    """The question in plain text. Each line of the server begins with ``| ``, so that none can look like ours."""
    return "\n".join(_lines(waiting))


def _lines(waiting: Waiting) -> Iterator[str]:
    held = waiting.held
    label = printable(held.label, _LONGEST_LABEL)
    yield f"{label} of the MCP server {waiting.server} {_WHY[held.why]}, so the call waits for you."
    yield "Approve it only if you want all of this. Lines that begin with | are the server's words:"
    for finding in held.findings:
        yield f"The scan has found {finding.rule} in:"
        yield f"| {printable(finding.place, _LONGEST_LABEL)}: {finding.evidence}"
    changed = waiting.difference
    yield from (f"| {each}" for each in changed)
    if waiting.before is not None and not changed:
        yield "Its definition is the one that was approved before."
    elif waiting.before is not None:
        yield "[-these words-] are gone, {+these words+} are new."
