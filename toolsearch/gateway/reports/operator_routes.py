"""Routes for the changes that operators make, on the status page or by a program: approvals, results and servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from starlette.routing import Route

from toolsearch.errors import BadSettingError
from toolsearch.gateway.approvals.page import decision_routes
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.operators import Change, Operators
from toolsearch.gateway.server_entries import Action, ServerChange, servers_in
from toolsearch.gateway.trust.held_results import HeldResults, ResultAction


def operator_routes(gateway: Gateway) -> list[Route]:
    """The routes of ``/approvals.json``, ``/results.json`` and, if the gateway works by a file, ``/servers.json``. The
    application has to let in operators alone.
    """
    operators = Operators()
    routes = decision_routes(operators, gateway.decisions) + _result_routes(operators, gateway.held_results)
    return routes if gateway.file is None else routes + _server_routes(operators, gateway, gateway.file)


class _ResultChange(Change):
    id: str
    action: ResultAction


def _result_routes(operators: Operators, held: HeldResults) -> list[Route]:
    async def show() -> Mapping[str, Any]:
        return {"held": [each.shown() for each in held.waiting()]}

    async def change(wanted: _ResultChange, who: str) -> Mapping[str, Any]:
        return await held.act(wanted.action, wanted.id, who)

    return operators.routes("/results.json", show, _ResultChange, change)


class _ServerRequest(Change):
    """*entry* is that of an added server, as ``mcpServers`` holds it. A reload names no server."""

    action: Action | Literal["reload"]
    name: str = ""
    entry: dict[str, Any] | None = None


def _server_routes(operators: Operators, gateway: Gateway, file: ConfigFile) -> list[Route]:
    may_add = gateway.config.settings.http.allow_adding

    async def show() -> Mapping[str, Any]:
        servers = await asyncio.to_thread(servers_in, file.path)
        listed = [{"name": name, "is_paused": is_paused} for name, is_paused in servers.items()]
        return {"servers": listed, "may_add": may_add}

    async def change(wanted: _ServerRequest, who: str) -> None:
        if wanted.action == "reload":
            await gateway.note(who, "reload", file.path.name)
            await _reloaded(gateway, file)
            return
        if wanted.action == "add" and not may_add:
            raise BadSettingError("servers can be added here only if toolsearch.http.allowAdding is true in the file")
        if (wanted.entry is None) is (wanted.action == "add"):
            raise BadSettingError("an added server has an entry, as in mcpServers; no other request has one")
        made = ServerChange(wanted.action, wanted.name, wanted.entry)
        await _reloaded(gateway, file)  # so that a fault in the file counts as nobody's change
        loop = asyncio.get_running_loop()

        def note(action: str, subject: str, *, server: str) -> None:
            asyncio.run_coroutine_threadsafe(gateway.note(who, action, subject, server=server), loop).result()

        await asyncio.to_thread(made.make, file.path, file.environment, note)
        await _reloaded(gateway, file)

    return operators.routes("/servers.json", show, _ServerRequest, change)


async def _reloaded(gateway: Gateway, file: ConfigFile) -> None:
    """Raise BadSettingError if the gateway cannot work by its file as it is."""
    await file.reload(gateway.reconfigure)
    if file.problem:
        raise BadSettingError(file.problem)
