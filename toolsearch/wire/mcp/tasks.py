"""Tasks: calls whose result is fetched later. Clients and servers of 2026 write them as an extension says, and those of
2025-11-25 as the protocol itself did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mcp import MCPError
from mcp.types import MISSING_REQUIRED_CLIENT_CAPABILITY

from toolsearch.documents.json_values import as_object, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.requests import META, TASKS_EXTENSION, meta_of

_AUGMENT: Final = "task"  # parameter of a call, of 2025: its result is to be fetched later
_MESSAGE: Final = "statusMessage"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_MOST_MS: Final = 1e12  # larger numbers of a server are ignored


class TaskStatus(Enum):
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class ServerTask:
    """A task as its server describes it. *poll_s* is None where the server says nothing of use. *message* describes its
    state for people, or is "".
    """

    id: str
    status: TaskStatus
    poll_s: float | None
    message: str
    raw: JsonObject

    @classmethod
    def read(cls, raw: JsonObject) -> ServerTask | None:
        """None if *raw* describes no task. A status that nobody knows counts as working."""
        id_ = raw.get("taskId")
        if not isinstance(id_, str) or not id_:
            return None
        known = {each.value: each for each in TaskStatus}
        status = known.get(str(raw.get("status")), TaskStatus.WORKING)
        message = raw.get(_MESSAGE)
        return cls(id_, status, _poll_s(raw), message if isinstance(message, str) else "", raw)


def is_task(result: Mapping[str, Any]) -> bool:
    """Whether a server of 2026 has made a task of the request."""
    return result.get("resultType") == "task"


def created_task(result: Mapping[str, Any]) -> ServerTask | None:
    """The task that a server of either era has made in place of a result; None for any other result."""
    if is_task(result):
        return ServerTask.read(result)
    made = as_object(result.get(_AUGMENT)) if "content" not in result else None
    return ServerTask.read(made) if made is not None else None


def follows_tasks(era: Era, capabilities: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether the client of a call with *params* takes a task in place of the result.

    A client of 2026 says so by its capabilities, and leaves the choice to us; an older one asks for it in each call.
    """
    if era is Era.LEGACY:
        return is_object(params.get(_AUGMENT))
    return TASKS_EXTENSION in (as_object(capabilities.get("extensions")) or {})


def taking_tasks(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """*capabilities* of a client that takes tasks besides."""
    return {**capabilities, "extensions": {**(as_object(capabilities.get("extensions")) or {}), TASKS_EXTENSION: {}}}


def augmented(params: Mapping[str, Any], *, is_wanted: bool) -> dict[str, Any]:
    """*params* of a call that asks an older server for a task, or asks for none."""
    kept = {key: value for key, value in params.items() if key != _AUGMENT}
    return {**kept, _AUGMENT: {}} if is_wanted else kept


def requires_tasks(error: MCPError) -> bool:
    """Whether a server of 2026 has refused a call only because its client takes no tasks."""
    needed = as_object((as_object(error.error.data) or {}).get("requiredCapabilities")) or {}
    extensions = as_object(needed.get("extensions")) or {}
    return error.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY and extensions.keys() == {TASKS_EXTENSION}


def tasks_missing() -> MCPError:
    """The error for a client of 2026 that asks for tasks without saying that it knows them."""
    needed: Json = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)


def without_related(result: Mapping[str, Any]) -> dict[str, Any]:
    """*result* without the id that its server gave the task."""
    if _RELATED not in meta_of(result):
        return dict(result)
    meta = {key: value for key, value in meta_of(result).items() if key != _RELATED}
    kept = {key: value for key, value in result.items() if key != META}
    return {**kept, META: meta} if meta else kept


def related_to(task_id: str) -> dict[str, Json]:
    """The ``_meta`` of a message of 2025 that belongs to a task."""
    return {_RELATED: {"taskId": task_id}}


def written_task(
    id_: str, status: TaskStatus, era: Era, *, created: str, updated: str, ttl_ms: int, poll_ms: int, message: str = ""
) -> dict[str, Json]:
    """The fields of a task that each era has, without its result."""
    ttl, poll = ("ttlMs", "pollIntervalMs") if era is Era.MODERN else ("ttl", "pollInterval")
    times: dict[str, Json] = {"createdAt": created, "lastUpdatedAt": updated}
    said: dict[str, Json] = {_MESSAGE: message} if message else {}
    return {"taskId": id_, "status": status.value, **said, **times, ttl: ttl_ms, poll: poll_ms}


def created_result(task: dict[str, Json], era: Era) -> dict[str, Json]:
    """The answer to the call of which *task* was made."""
    return {"resultType": "task", **task} if era is Era.MODERN else {"task": task}


def _poll_s(raw: JsonObject) -> float | None:
    poll_ms = raw.get("pollIntervalMs", raw.get("pollInterval"))
    if isinstance(poll_ms, bool) or not isinstance(poll_ms, int | float) or not 0 < poll_ms < _MOST_MS:
        return None
    return poll_ms / 1_000
