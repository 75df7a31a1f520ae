"""Logs a person in to a server that asks for it, with their browser, and keeps the tokens for the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from mcp import MCPError
from mcp.shared.auth import AuthorizationCodeResult

from toolsearch.errors import BadSettingError, LoginRequiredError
from toolsearch.upstreams.connector import CannotConnectError, Connector
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.oauth import stored_tokens
from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.methods import LIST_TOOLS

_PATIENCE_S = 300.0
_PAGE = b"<!doctype html><title>toolsearch</title><p>You can close this page and go back to the terminal."


async def login(
    settings: UpstreamSettings,
    state_dir: Path,
    *,
    show: Callable[[str], None],
    open_page: Callable[[str], object] | None = None,
) -> None:
    """Connect to the server once; if it asks for a login, *show* gets the address for the browser, and the answer is
    awaited on a loopback address for five minutes.

    *open_page* gets the address alone, in a thread, once it has been shown; the server has chosen it. Raises
    BadSettingError where there is nothing to log in to, and LoginRequiredError where it did not work.
    """
    tokens = stored_tokens(replace(settings, state_folder=state_dir))
    if tokens is None:
        raise BadSettingError(f"MCP server {settings.name!r} is not one to log in to: it takes no OAuth over HTTP")
    before = tokens.stamp()

    async def ask(url: str) -> None:
        show(f"Log in to {settings.name} here: {url}")
        if open_page is not None:
            await asyncio.to_thread(open_page, url)

    async with _callback(tokens.callback_port) as (redirect_uri, answer):
        tokens.forget()  # the registration is for another loopback port
        provider = tokens.provider(redirect_uri, ask=ask, answer=lambda: asyncio.wait_for(answer, _PATIENCE_S))
        connector = Connector(settings.server, SessionPeer, timeout_s=_PATIENCE_S, auth=provider)
        try:
            session = await connector.open()
            await session.request(LIST_TOOLS, {})  # some let everybody in, and ask who it is only now
        except CannotConnectError as error:
            raise LoginRequiredError(f"the login to {settings.name!r} failed: {error}") from error
        except MCPError as error:
            if (fault := fault_of_request(error)) is not None:
                raise LoginRequiredError(f"the login to {settings.name!r} failed: {fault.reason}") from error
        finally:
            await connector.aclose()
    if tokens.stamp() in (0, before):
        show(f"{settings.name} asks for no login.")
        return
    tokens.keep_servers_of(provider)
    show(f"Logged in to {settings.name}.")


@asynccontextmanager
async def _callback(port: int) -> AsyncGenerator[tuple[str, asyncio.Future[AuthorizationCodeResult]]]:
    """A page on a loopback address, at *port* or any if that is 0, and what the browser brings to it."""
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        line = (await reading.readline()).decode(errors="replace").split(" ")
        query = parse_qs(urlsplit(line[1] if len(line) > 1 else "").query)
        given = {name: values[0] for name, values in query.items()}
        if not answer.done() and ("code" in given or "error" in given):
            answer.set_result(
                AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
            )
        writing.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + _PAGE)
        await writing.drain()
        writing.close()

    try:
        listening = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        raise LoginRequiredError(f"the browser cannot be sent to port {port} of this computer: {error}") from error
    async with listening as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/callback", answer
