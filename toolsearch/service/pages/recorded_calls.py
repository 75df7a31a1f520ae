"""Calls that a person has made by hand: kept, sealed, for as long as the browser stays signed in, and for it alone."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any, Final

from toolsearch.errors import UnknownRecordError
from toolsearch.service.service import Service
from toolsearch.service.visits import Visit
from toolsearch.storage.records import Record
from toolsearch.tools.json_types import JsonObject

RECORDED_CALL: Final = "recorded call"  # the kind of their records
_MOST_CHARACTERS: Final = 200_000  # of a result; a longer one is kept up to there
_LISTED: Final = 200


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call. *state* is done, failed, or handed back to the caller, who runs it.

    content     what the model would read, as text
    structured  the same as JSON, if the tool gives any
    """

    id: str
    corpus: str
    tool: str
    at_s: float
    took_ms: float
    arguments: JsonObject
    state: str
    content: str
    structured: str = ""
    code: str = ""


async def record(service: Service, visit: Visit, call: RecordedCall) -> None:
    call_text = json.dumps(asdict(call))
    await asyncio.to_thread(
        service.storage.records.put,
        visit.caller.tenant,
        RECORDED_CALL,
        _place(visit, call.id),
        {"sealed": service.seal.seal(call_text)},
        over=0,
        at_s=call.at_s,
        expires_s=call.at_s + service.settings.serve.visit_s,
    )


def new_call_id(at_s: float) -> str:
    """Ids grow with time."""
    return f"{int(at_s * 1_000):015d}-{secrets.token_hex(4)}"


async def recorded(service: Service, visit: Visit, call_id: str) -> RecordedCall:
    """Raises UnknownRecordError for what this browser has not called."""
    found = await asyncio.to_thread(
        service.storage.records.get,
        visit.caller.tenant,
        RECORDED_CALL,
        _place(visit, call_id),
        at_s=service.clock(),
    )
    if found is None:
        raise UnknownRecordError(RECORDED_CALL, call_id)
    return _read(service, found)


async def latest(service: Service, visit: Visit) -> list[RecordedCall]:
    """The newest first."""
    start = _place(visit, "")
    found = await asyncio.to_thread(
        service.storage.records.page,
        visit.caller.tenant,
        RECORDED_CALL,
        after=start,
        limit=_LISTED,
        at_s=service.clock(),
    )
    return [_read(service, each) for each in reversed(found) if each.id.startswith(start)]


def shortened(text: str) -> str:
    left_out = len(text) - _MOST_CHARACTERS
    return text if left_out <= 0 else f"{text[:_MOST_CHARACTERS]}\n… and {left_out:,} characters more"


def _place(visit: Visit, call_id: str) -> str:
    return f"{visit.id[:32]}.{call_id}"


def _read(service: Service, found: Record) -> RecordedCall:
    values: dict[str, Any] = json.loads(service.seal.open(str(found.document["sealed"])))
    return RecordedCall(**values)
