"""Records each write over HTTP, before it is acknowledged, also one that was refused."""

from __future__ import annotations

from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.errors import AuditStoreError
from toolsearch.service.audit import DONE, Audit
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.paths import API
from toolsearch.service.problems import problem_of

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WRITING: Final = frozenset({"write-catalog", "admin"})  # the scopes of routes that change what others see


class Audited:
    """What a route needs says whether it writes: `caller_with` notes it. A route that does more says that itself, with
    `Audit.note`.
    """

    def __init__(self, app: ASGIApp, *, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READING:
            await self._app(scope, receive, send)
            return

        is_recorded = True

        async def recorded(message: Message) -> None:
            nonlocal is_recorded
            if message["type"] == "http.response.start":
                try:
                    await self._record(scope, message["status"])
                except AuditStoreError as error:  # answered here, since the route believes that it has answered
                    is_recorded = False
                    await problem_of(error)(scope, receive, send)
            if is_recorded:
                await send(message)

        await self._app(scope, receive, recorded)

    async def _record(self, scope: Scope, status: int) -> None:
        state: dict[str, Any] = scope["state"]
        caller: ServiceCaller | None = state.get("caller")
        if caller is None or not _WRITING.intersection(state.get("needed_scopes", ())):
            return
        route = str(getattr(scope.get("route"), "path", scope["path"]))
        values = "/".join(map(str, scope.get("path_params", {}).values()))
        outcome = DONE if status < 400 else f"refused: {status}"
        await self._audit.note(caller, f"{scope['method']} {route.removeprefix(API)}", values, outcome)
