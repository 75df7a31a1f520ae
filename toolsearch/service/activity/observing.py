"""What the gateway of a corpus tells of the lists, searches and calls that it serves, over MCP and HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.status.observing import CallEnd
from toolsearch.service.activity.activity import Activity, CallNote, Who
from toolsearch.service.activity.misses import SearchNote
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.storage.receipts import Decision, Outcome


@dataclass(frozen=True, slots=True)
class ActivityObserver:
    """A `GatewayObserver`."""

    activity: Activity
    corpus: CorpusRef

    def listed(self, caller: Caller, *, shown_tokens: int, all_tools_tokens: int) -> None:
        self.activity.requested(who_of(caller), sent_tokens=shown_tokens, all_tools_tokens=all_tools_tokens)

    def searched(
        self, caller: Caller, answers: Sequence[AnsweredQuery], *, written_tokens: int, answer_tokens: int
    ) -> None:
        who = who_of(caller)
        self.activity.searched(who, self.corpus, search_notes(answers))
        self.activity.wrote(who, written_tokens=written_tokens)
        self.activity.answered(who, sent_tokens=answer_tokens)

    def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None]:
        return self.activity.called(who_of(caller), self.corpus, call_note(end))


def who_of(caller: Caller) -> Who:
    return Who(caller.principal.id, caller.key, caller.session, caller.request_id)


def search_notes(answers: Sequence[AnsweredQuery]) -> list[SearchNote]:
    """Of the answers to queries; one that could not be searched for is no request."""
    return [SearchNote(each.query, [tool.reference for tool in each.tools]) for each in answers if not each.error]


def call_note(end: CallEnd) -> CallNote:
    fingerprint = end.definition.fingerprint() if end.definition is not None else ""
    if end.is_handed_back:
        return CallNote(end.name, fingerprint, "handed_back", "handed_back", "", end.seconds)
    outcome: Outcome = "ok" if not end.code else "tool_error" if end.was_run else "refused"
    decision: Decision = "allowed" if end.was_run else "refused"
    return CallNote(end.name, fingerprint, decision, outcome, end.code, end.seconds)
