"""Logs a person in to a server with a browser: by a command, or by a link that an error tells the user.

Over HTTP the link leads to a page of the gateway, which sends the browser on to the authorization server. Without HTTP
it leads there at once, and the browser returns to a loopback address.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp import MCPError
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

from toolsearch.access.principals import Grant
from toolsearch.chores import end, is_set_within
from toolsearch.errors import BadSettingError, LoginRequiredError, ToolSearchError
from toolsearch.upstreams.config import server_identity
from toolsearch.upstreams.connection import CannotConnectError, Connector
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens
from toolsearch.wire.mcp.requests import LIST_TOOLS

LOGIN_PATH: Final = "/login"
CALLBACK_PATH: Final = f"{LOGIN_PATH}/callback"
TTL_S: Final = 600.0
LOGIN_S: Final = 300.0  # for a person to log in
_URL_S: Final = 30.0  # for the authorization server to say where to log in
_MOST, _MOST_OF_PRINCIPAL, _MOST_OF_USER = 1_000, 200, 20  # logins that have begun
logger = logging.getLogger(__name__)


def _nothing() -> None:
    """What is done once a login has succeeded, if nobody waits for that."""


@dataclass(eq=False, slots=True)
class BegunLogin:
    """One login. *page* is where the browser goes to log in, *answer* what it brings back.

    ended  set once the login has succeeded or failed; *failure* says why it failed
    """

    grant: Grant
    settings: UpstreamSettings
    tokens: StoredTokens
    reached_at: str
    end_s: float
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    state: str = field(default="", repr=False)
    page: asyncio.Future[str] = field(default_factory=asyncio.Future[str])
    answer: asyncio.Future[AuthorizationCodeResult] = field(default_factory=asyncio.Future[AuthorizationCodeResult])
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str = ""
    on_success: Callable[[], object] = _nothing
    task: asyncio.Task[None] | None = None

    @property
    def server(self) -> str:
        return self.settings.name

    def take(self, result: AuthorizationCodeResult) -> bool:
        """Take the browser's answer; False if there was one before."""
        if self.answer.done():
            return False
        self.answer.set_result(result)
        return True

    async def succeeds(self, within_s: float) -> bool:
        return await is_set_within(self.ended, within_s) and not self.failure


def _key(grant: Grant, settings: UpstreamSettings) -> tuple[str, str]:
    return grant.account, server_identity(settings.server)


class Logins:
    """The logins that people have begun and not finished: each for one user at one server, for ten minutes, once.

    To be used from one event loop. *record* is awaited with a user and a server before that login counts; it
    raises ToolSearchError if it must not.
    """

    advice = ""

    def __init__(
        self, record: Callable[[Grant, str], Awaitable[None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._record = record
        self._clock = clock
        self._begun: dict[tuple[str, str], BegunLogin] = {}  # by account and server, oldest first

    async def link(
        self, grant: Grant, settings: UpstreamSettings, reached_at: str, *, on_success: Callable[[], object]
    ) -> str:
        """See `UserLogins.link`. A login that has begun is gone on with."""
        login = self.begin(grant, settings, reached_at, on_success=on_success)
        return await self.page(login) if not reached_at else f"{reached_at}{LOGIN_PATH}/{login.ticket}"

    def begin(
        self, grant: Grant, settings: UpstreamSettings, reached_at: str, *, on_success: Callable[[], object]
    ) -> BegunLogin:
        """The login of the user, which has begun before or begins now. Raises LoginRequiredError as `link` does."""
        if not isinstance(settings.tokens, StoredTokens):
            raise LoginRequiredError(f"nobody can log in to the MCP server {settings.name!r}")
        login = self._login(grant, settings, settings.tokens, reached_at)
        login.on_success = on_success
        return login

    def begun(self, grant: Grant, ticket: str) -> BegunLogin | None:
        """The login of *ticket*, if it is one of the user and has not ended."""
        return self._found(grant, lambda login: secrets.compare_digest(login.ticket.encode(), ticket.encode()))

    def answered(self, grant: Grant, state: str) -> BegunLogin | None:
        """The login of the user that the authorization server answers with *state*."""
        return self._found(
            grant, lambda login: bool(login.state) and secrets.compare_digest(login.state.encode(), state.encode())
        )

    async def page(self, login: BegunLogin) -> str:
        """Where the browser has to go for *login*. Raises LoginRequiredError if the server cannot say that."""
        if login.task is None:
            login.task = Context().run(asyncio.create_task, self._run(login))
        try:
            return await asyncio.wait_for(asyncio.shield(login.page), _URL_S)
        except TimeoutError as error:
            raise LoginRequiredError(f"{login.server!r} did not say where to log in within {_URL_S:g} s") from error

    async def finished(self, grant: Grant, settings: UpstreamSettings, since: float, within_s: float) -> bool:  # noqa: ARG002
        """See `UserLogins.finished`."""
        login = self._begun.get(_key(grant, settings))
        return login is not None and await login.succeeds(within_s)

    async def aclose(self) -> None:
        """Give up all logins."""
        tasks = [login.task for login in self._begun.values() if login.task is not None]
        self._begun.clear()
        await end(*tasks)

    def _login(self, grant: Grant, settings: UpstreamSettings, tokens: StoredTokens, reached_at: str) -> BegunLogin:
        key = _key(grant, settings)
        known = self._begun.get(key)
        is_good = known is not None and self._is_open(known) and known.reached_at == reached_at
        if known is not None and is_good and known.settings == settings:
            return known
        self._drop(key)
        self._make_room(grant)
        login = self._begun[key] = BegunLogin(grant, settings, tokens, reached_at, self._clock() + TTL_S)
        return login

    def _make_room(self, grant: Grant) -> None:
        """Where there are as many as may be, give up the oldest one of who has most: nobody ends the logins of others
        by beginning many.
        """
        whose = {key: (login.grant.principal.id, key[0]) for key, login in self._begun.items()}
        mine = grant.principal.id, grant.account
        for most, group in ((_MOST_OF_USER, mine), (_MOST_OF_PRINCIPAL, mine[:1]), (_MOST, ())):
            inside = [key for key, each in whose.items() if each[: len(group)] == group]
            if len(inside) >= most:
                principals, users = Counter(whose[key][0] for key in inside), Counter(whose[key] for key in inside)
                self._drop(max(inside, key=lambda key: (principals[whose[key][0]], users[whose[key]])))
                return

    def _found(self, grant: Grant, is_meant: Callable[[BegunLogin], bool]) -> BegunLogin | None:
        found = [login for login in self._begun.values() if is_meant(login)]
        return next((each for each in found if each.grant.account == grant.account and self._is_open(each)), None)

    def _is_open(self, login: BegunLogin) -> bool:
        return self._clock() < login.end_s and not login.ended.is_set()

    def _drop(self, key: tuple[str, str]) -> None:
        login = self._begun.pop(key, None)
        if login is not None and login.task is not None:
            login.task.cancel()

    async def _run(self, login: BegunLogin) -> None:
        """Log in. Whatever the outcome, *login* is over after that, and its link leads nowhere any more."""

        async def ask(url: str) -> None:
            if login.page.done():
                raise OAuthFlowError("the server does not accept the login that was made")
            if not is_web_page(url):
                login.failure = "it names no web page to log in at"
                raise OAuthFlowError(login.failure)
            login.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
            login.page.set_result(url)

        async def answer() -> AuthorizationCodeResult:
            answered = await asyncio.wait_for(asyncio.shield(login.answer), LOGIN_S)
            await self._record(login.grant, login.server)
            return answered

        try:
            async with AsyncExitStack() as stack:
                if login.reached_at:
                    redirect_uri = f"{login.reached_at}{CALLBACK_PATH}"
                else:
                    redirect_uri, given = await stack.enter_async_context(callback(login.tokens.redirect_uri))
                    given.add_done_callback(lambda done: done.cancelled() or login.take(done.result()))
                is_asked = await log_in(login.settings, login.tokens, redirect_uri, ask=ask, answer=answer)
            if is_asked:
                login.on_success()
            else:
                login.failure = "it asks for no login"
        except asyncio.CancelledError:
            login.failure = "it was given up"
            raise
        except (ToolSearchError, OSError) as error:
            logger.warning("%s", error)
            login.failure = login.failure or "it failed"
        finally:
            login.ended.set()
            if not login.page.done():
                login.page.set_exception(LoginRequiredError(f"the login to {login.server!r} failed: {login.failure}"))
                login.page.exception()  # marks it as retrieved: nobody may be waiting


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
    BadSettingError if nobody can log in to the server with OAuth, and LoginRequiredError if the login failed.
    """
    tokens = stored_tokens(replace(settings, state_folder=state_dir))
    if tokens is None or settings.credentials == "exchange":
        raise BadSettingError(f"MCP server {settings.name!r} is not one to log in to: it takes no OAuth over HTTP")

    async def ask(url: str) -> None:
        show(f"Log in to {settings.name} here: {url}")
        if open_page is not None:
            await asyncio.to_thread(open_page, url)

    async with callback(tokens.redirect_uri) as (redirect_uri, given):
        is_asked = await log_in(
            settings, tokens, redirect_uri, ask=ask, answer=lambda: asyncio.wait_for(given, LOGIN_S)
        )
    show(f"Logged in to {settings.name}." if is_asked else f"{settings.name} asks for no login.")


async def log_in(
    settings: UpstreamSettings,
    tokens: StoredTokens,
    redirect_uri: str,
    *,
    ask: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> bool:
    """Connect to the server once, with no token, and log in if it asks for that. Return whether it has asked.

    *tokens* are replaced once the login has succeeded, and stay as they are if not. Raises LoginRequiredError.
    """
    made = tokens.anew()
    provider = made.provider(redirect_uri, ask=ask, answer=answer)
    connector = Connector(
        settings.server, SessionPeer, timeout_s=LOGIN_S, auth=provider, open_transport=settings.open_transport
    )
    try:
        session = await connector.open()
        await session.request(LIST_TOOLS, {})  # some servers let everybody connect and demand the login only now
    except CannotConnectError as error:
        raise LoginRequiredError(f"the login to {settings.name!r} failed: {error}") from error
    except MCPError as error:
        if (fault := fault_of_request(error)) is not None:
            raise LoginRequiredError(f"the login to {settings.name!r} failed: {fault.reason}") from error
    finally:
        await connector.aclose()
    if not made.is_there:
        return False
    await made.keep_servers_of(provider)
    await tokens.take(made)
    return True


def is_web_page(url: str) -> bool:
    """Whether *url*, which a server has chosen, is the address of a web page, and not of a file or a program. A name of
    a user before the host looks like another host.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_of_a_host = bool(parts.hostname) and "@" not in parts.netloc
    return parts.scheme in {"https", "http"} and is_of_a_host and url.isprintable() and " " not in url


def answer_in(query: Mapping[str, str]) -> AuthorizationCodeResult:
    """The answer of an authorization server, which a browser brings in the *query* of an address."""
    return AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))


@asynccontextmanager
async def callback(redirect_uri: str) -> AsyncGenerator[tuple[str, asyncio.Future[AuthorizationCodeResult]]]:
    """Serve a page at *redirect_uri*, at any free port if it has none. Give its whole address, and the browser's
    answer.
    """
    place = urlsplit(redirect_uri)
    host = "::1" if place.hostname == "::1" else "127.0.0.1"  # nothing else, whatever the name localhost means here
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        line = (await reading.readline()).decode(errors="replace").split(" ")
        query = parse_qs(urlsplit(line[1] if len(line) > 1 else "").query)
        given = {name: values[0] for name, values in query.items()}
        if not answer.done() and ("code" in given or "error" in given):
            answer.set_result(answer_in(given))
        writing.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + _PAGE)
        await writing.drain()
        writing.close()

    try:
        listening = await asyncio.start_server(serve, host, place.port or 0)
    except OSError as error:
        raise LoginRequiredError(f"the browser cannot return to {redirect_uri}: {error}") from error
    async with listening as server:
        port = server.sockets[0].getsockname()[1]
        yield (redirect_uri if place.port else place._replace(netloc=f"{place.netloc}:{port}").geturl()), answer
