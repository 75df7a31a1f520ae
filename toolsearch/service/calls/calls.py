"""Calls of tools over HTTP: run by the gateway of their corpus, or handed back to a caller who runs them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from toolsearch.access.principals import Principal
from toolsearch.errors import (
    ConflictError,
    NotCallableHereError,
    StorageError,
    ToolExecutionError,
    ToolNotHereError,
    UnapprovedToolError,
    UnknownRecordError,
    UnknownSessionError,
    UnknownToolError,
)
from toolsearch.gateway.caller import Caller
from toolsearch.service.activity.activity import Activity, Who, in_ms, search_notes
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.keys.keys import is_same_owner
from toolsearch.service.sessions.sessions import OpenSession, Sessions
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.limits import Limits
from toolsearch.sessions.answering import Answered
from toolsearch.storage.activity import CallNote
from toolsearch.storage.records import Record, RecordStore
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class SilentDownstream:
    """A `Downstream` that lives for one request."""

    session_key: str  # a new key for each request
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        pass

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        raise MCPError(
            METHOD_NOT_FOUND, f"nobody can be asked {method} during a call over HTTP; call the tool over MCP"
        )

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        pass

    def as_task(self) -> None:
        pass


logger = logging.getLogger(__name__)
HANDED_BACK: Final = "handed-back call"  # the kind of the records of such calls
_REPORT_WITHIN_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class HandedBack:
    """A call that the caller has to run. *arguments* fit the definition that *fingerprint* is of."""

    name: str
    id: str
    arguments: Mapping[str, Any]
    fingerprint: str


class Calls:
    """All calls go through the gateway of their corpus, which writes their receipts."""

    def __init__(
        self,
        sessions: Sessions,
        corpora: Corpora,
        records: RecordStore,
        activity: Activity,
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self._sessions = sessions
        self._corpora = corpora
        self._records = records
        self._activity = activity
        self._limits = limits
        self._clock = clock

    async def call(
        self, caller: ServiceCaller, ref: CorpusRef, name: str, arguments: JsonObject
    ) -> ToolResult | HandedBack:
        """Call a tool of a corpus, without a session. Raises UnknownRecordError, and as `call_in_session`."""
        await self._limits.calls(caller)
        async with self._corpora.using(ref) as corpus:
            return await self._run(caller, corpus, corpus.asks_for(caller), "", name, arguments)

    async def call_in_session(
        self, caller: ServiceCaller, session_id: str, name: str, arguments: JsonObject
    ) -> ToolResult | HandedBack:
        """Call a tool, also the search tool. A failure that a model should read is a result.

        Raises UnknownSessionError, UnknownToolError for a tool out of reach, and UnapprovedToolError.
        """
        await self._limits.calls(caller)
        async with self._sessions.using(caller, session_id) as opened:
            return await self.run(caller, opened, name, arguments)

    async def report(self, caller: ServiceCaller, call_id: str, *, is_error: bool) -> None:
        """Note the end of a call that was handed back, once.

        Raises UnknownRecordError if no such call waits: it was reported already, or handed to another key.
        """
        found = await asyncio.to_thread(self._handed_to, caller, call_id)
        if found is None or not await asyncio.to_thread(self._take, caller.tenant, call_id, found.version):
            raise UnknownRecordError(HANDED_BACK, call_id)
        document: Any = found.document
        ref = CorpusRef(caller.tenant, document["corpus"]["kind"], document["corpus"]["name"])
        seconds = max(0.0, self._clock() - document["at_s"])  # 0 if the clock was set back meanwhile
        note = CallNote(
            document["tool"],
            "tool",
            document["fingerprint"],
            "handed_back",
            "tool_error" if is_error else "ok",
            ToolExecutionError.code if is_error else "",
            in_ms(seconds),
        )
        who = Who(caller.tenant, caller.key_id, document["session"], caller.request_id)
        await self._activity.reported(who, ref, note)
        if document["session"]:
            await self._note_in_session(caller, document["session"], document["tool"], is_error=is_error)

    async def run(
        self,
        caller: ServiceCaller,
        opened: OpenSession,
        name: str,
        arguments: JsonObject,
        *,
        is_search_round: bool = True,
    ) -> ToolResult | HandedBack:
        """As `call_in_session`, but in an open session. The caller checks the limits."""
        if name == TOOL_NAME:
            answered = await self.search(caller, opened, arguments, is_search_round=is_search_round)
            return ToolResult("", TOOL_NAME, answered.output.content, answered.output.structured)
        return await self._run(caller, opened.corpus, opened.asking, opened.kept.id, name, arguments)

    async def search(
        self, caller: ServiceCaller, opened: OpenSession, arguments: JsonObject, *, is_search_round: bool = True
    ) -> Answered:
        """Search as a call of the search tool does. For *is_search_round* see `Conversation.note_searches`.

        Raises BadQueryError, written for the model, and NotPermittedError: to call does not include to search.
        """
        caller.require("search")
        answered, written_tokens = await opened.search(arguments, is_search_round=is_search_round)
        who = Who(caller.tenant, caller.key_id, opened.kept.id, caller.request_id)
        self._activity.searched(who, opened.corpus.ref, search_notes(answered.queries))
        self._activity.wrote(who, written_tokens=written_tokens)
        return answered

    async def _run(
        self,
        caller: ServiceCaller,
        corpus: Corpus,
        principal: Principal,
        session_id: str,
        name: str,
        arguments: JsonObject,
    ) -> ToolResult | HandedBack:
        who = Caller(
            caller.in_session(session_id, principal),
            Era.LEGACY,
            request_id=caller.request_id,
            reached_at=caller.reached_at,
        )
        outcome = await corpus.gateway.run(who, name, arguments, SilentDownstream(secrets.token_hex(8)))
        result = outcome.result
        match outcome.error:
            case NotCallableHereError() as error:
                return await self._hand_back(caller, corpus.ref, session_id, error)
            case UnknownToolError() | UnapprovedToolError() as error if result.name == name:
                raise error
            case _ if result.error_code == ToolNotHereError.code:  # the request may be sent to another replica
                raise ToolNotHereError(result.name)
            case _:
                return result

    async def _hand_back(
        self, caller: ServiceCaller, ref: CorpusRef, session_id: str, error: NotCallableHereError
    ) -> HandedBack:
        """Hand a call back. Its report is checked against the record, so that callers can report only their
        own calls.
        """
        call_id, now_s = f"call_{secrets.token_hex(12)}", self._clock()
        back = HandedBack(error.definition.name, call_id, error.arguments, error.definition.fingerprint())
        document = {
            "corpus": {"kind": ref.kind, "name": ref.name},
            "session": session_id,
            "key": caller.key_id,
            "tool": back.name,
            "fingerprint": back.fingerprint,
            "at_s": now_s,
        }
        await asyncio.to_thread(
            self._records.put,
            *(caller.tenant, HANDED_BACK, call_id, document),
            over=0,
            at_s=now_s,
            expires_s=now_s + _REPORT_WITHIN_S,
        )
        return back

    def _handed_to(self, caller: ServiceCaller, call_id: str) -> Record | None:
        now_s = self._clock()
        found = self._records.get(caller.tenant, HANDED_BACK, call_id, at_s=now_s)
        key = str(found.document.get("key", "")) if found else ""
        return found if is_same_owner(self._records, caller.tenant, key, caller.key_id, at_s=now_s) else None

    def _take(self, tenant: str, call_id: str, version: int) -> bool:
        try:
            return self._records.delete(tenant, HANDED_BACK, call_id, over=version)
        except ConflictError:  # the call was reported twice at the same moment
            return False

    async def _note_in_session(self, caller: ServiceCaller, session_id: str, tool: str, *, is_error: bool) -> None:
        try:
            async with self._sessions.using(caller, session_id) as opened:
                await opened.run(lambda conversation: conversation.note_call(tool, is_error=is_error))
        except (UnknownSessionError, UnknownRecordError):  # the session has ended meanwhile
            pass
        except StorageError as error:  # the report is stored and cannot be repeated, so this is only logged
            logger.warning("a reported call is not noted in its session: %s", error)
