"""Calls a tool at its server, or reads a skill, prompt or resource there, and gives the answer that a model reads."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp import MCPError

from toolsearch.errors import ChangedSkillError, ToolExecutionError, ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.overrides import sent_arguments, shown_result
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.gateway.proxy.suspended_calls import ANY_ROOM, Room
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.scan import SUSPICIOUS
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import Tool, ToolOverride
from toolsearch.tools.naming import READ_SKILL
from toolsearch.upstreams.entry_requests import EntryRequest, explained, output_of, request_of
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.definitions import task_support
from toolsearch.wire.mcp.eras import result_for
from toolsearch.wire.mcp.requests import arguments_in, asks_for_input, error_result, meta_of, with_meta, write_result
from toolsearch.wire.mcp.tasks import augmented, follows_tasks

logger = logging.getLogger(__name__)
_CALL: Final = frozenset({"name", "arguments"})  # parameters of a call that do not go to the server as they are


@dataclass(frozen=True, slots=True)
class Entries:
    """The admitted tools, skills, prompts and resources of the servers, as they are called."""

    registry: Registry
    relay: Relay
    counter: TokenCounter

    async def answer(
        self,
        caller: Caller,
        entry: Tool,
        params: Mapping[str, Any],
        downstream: Downstream,
        admit: Callable[[], object],
        room: Room = ANY_ROOM,
    ) -> dict[str, Any]:
        """The answer to ``tools/call`` with *params*, whose arguments are checked, by the server of *entry* and by no
        other. A tool's answer is the server's own, as far as its settings pass it on, and all others are written from
        what was read. *admit* and *room* are as in `Relay.send`.

        Raises as `Relay.send`, `sent_arguments` and `shown_result`; BadArgumentsError, and ChangedSkillError for a file
        that is not the listed one.
        """
        server, arguments, override = _origin_of(entry), arguments_in(params), entry.override
        is_tool = entry.definition.kind == "tool"
        rest = _passed_on(params, is_tool=is_tool)
        if override is not None:
            claims = caller.grant.claims
            arguments = sent_arguments(override, arguments, claims.values if claims else {})

        async def send(request: EntryRequest) -> dict[str, Any]:
            async def show(raw: Mapping[str, Any]) -> Mapping[str, Any]:
                if entry.is_skill:
                    return raw  # it is looked at once its bytes have been verified
                part = raw if override is None else shown_result(override, raw, self.counter)
                return await self.relay.inspected(server, request.method, part)

            sent = {**rest, **request.params}
            return await self.relay.send(caller, server, request.method, sent, downstream, admit, show, room)

        listing = self.registry.listings.get(server)
        request = request_of(entry, arguments, skills=listing.skills if listing else ())
        if is_tool:
            is_wanted = _becomes_task(caller, entry, params)
            made = EntryRequest(request.method, augmented(request.params, is_wanted=is_wanted))
            return await self._called(server, override, send(made))
        try:
            raw = await send(request)
            if asks_for_input(raw):
                return raw
            answer = _marked(write_result(output_of(entry, arguments, raw)), raw)
            if entry.is_skill:  # the model reads its bytes as a text, which the server's answer need not be
                answer = dict(await self.relay.inspected(server, READ_SKILL, answer))
                self.relay.require_passed_on(server, answer)
        except ChangedSkillError as error:
            raise await self._as_known_now(caller, error, entry, send) from None
        except MCPError as error:  # the model has called, so it is the one to read this
            answer = error_result(f"{server}: {error.message}", ToolExecutionError.code)
        return result_for(answer, caller.era)

    async def _called(
        self, server: str, override: ToolOverride | None, answer: Awaitable[dict[str, Any]]
    ) -> dict[str, Any]:
        try:
            return await answer
        except MCPError:
            if override is None or not override.pick:
                raise
            raise ToolExecutionError(f"{server} refused the call; the settings hide its reason") from None

    async def _as_known_now(
        self,
        caller: Caller,
        error: ChangedSkillError,
        entry: Tool,
        send: Callable[[EntryRequest], Awaitable[Mapping[str, Any]]],
    ) -> ChangedSkillError:
        """*error*, with what the server says of the skill now. The server is listed again, so that it is judged."""
        said = await explained(error, entry, send)
        try:
            await self.relay.relist(caller, _origin_of(entry))
        except (MCPError, ToolSearchError) as failure:
            logger.warning("%s could not be listed after a skill had changed: %s", _origin_of(entry), failure)
        return said


def _passed_on(params: Mapping[str, Any], *, is_tool: bool) -> dict[str, Any]:
    """What of a call goes to the server as it is. Whether it becomes a task is between us and the server."""
    passed = augmented(params, is_wanted=False)
    return passed if is_tool else {key: value for key, value in passed.items() if key not in _CALL}


def _becomes_task(caller: Caller, tool: Tool, params: Mapping[str, Any]) -> bool:
    """Whether a server of 2025 is asked for a task: if it wants that, or if it can and the client follows tasks."""
    support = task_support(tool.origin.raw) if tool.origin is not None else None
    if support != "optional":
        return support == "required"
    return follows_tasks(caller.era, caller.capabilities, params)


def _origin_of(entry: Tool) -> str:
    return entry.origin.server if entry.origin else entry.definition.server


def _marked(answer: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """*answer* with what the scan has found in *raw*."""
    found = meta_of(raw).get(SUSPICIOUS)
    return dict(answer) if found is None else with_meta(answer, {SUSPICIOUS: found})
