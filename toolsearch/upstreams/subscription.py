"""Subscribes to changed lists at servers of 2026, which announce them only to subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost, listen

from toolsearch.upstreams.backoff import delay_s
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.session import McpSession

logger = logging.getLogger(__name__)


async def hear_of_changes(
    session: McpSession,
    *,
    changed: Callable[[], None],
    ended: Callable[[], None],
    may_have_changed: Callable[[], None],
    timeout_s: float,
    random: Callable[[], float],
) -> None:
    """Listen until the session ends, and again after each time that the stream ends.

    changed           called after each change that the server announces
    ended             called when the stream ends, since another server may answer afterwards
    may_have_changed  called whenever listening begins, since a change before that was not heard

    Returns at once if the server announces nothing, or speaks the older protocol, which needs no subscription.
    """
    told = _told(session)
    if session.shook_hands or told == _Told():
        return
    failures = 0
    while not session.ended.is_set():
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(timeout_s):
                    subscription = await stack.enter_async_context(
                        listen(
                            session.sdk,
                            tools_list_changed=told.tools,
                            prompts_list_changed=told.prompts,
                            resources_list_changed=told.resources,
                        )
                    )
                may_have_changed()
                async for _ in subscription:
                    failures = 0
                    changed()
        except MCPError as error:
            fault = fault_of_request(error)
            if fault is None or not fault.counts:
                logger.debug("%s", error)
                return  # it declares subscriptions, and does not have them
        except (SubscriptionLost, TimeoutError):
            pass
        failures += 1
        ended()
        await asyncio.sleep(delay_s(failures, random))


@dataclass(frozen=True, slots=True)
class _Told:
    """The lists of which a server announces changes."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False


def _told(session: McpSession) -> _Told:
    declared = session.sdk.server_capabilities
    if declared is None:
        return _Told()
    return _Told(
        tools=declared.tools is not None and declared.tools.list_changed is True,
        prompts=declared.prompts is not None and declared.prompts.list_changed is True,
        resources=declared.resources is not None and declared.resources.list_changed is True,
    )
