"""The logins that people have begun and not finished: each for one user at one server, for ten minutes, once.

A login begins with a link, which an error tells the user. Over HTTP it leads to a page of the gateway, which sends the
browser on to the authorization server. Without HTTP it leads there at once, and the answer comes to a loopback address.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

from toolsearch.errors import LoginRequiredError, ToolSearchError
from toolsearch.upstreams.oauth import LOGIN_S, StoredTokens, callback, log_in
from toolsearch.upstreams.settings import UpstreamSettings

LOGIN_PATH: Final = "/login"
CALLBACK_PATH: Final = f"{LOGIN_PATH}/callback"
TTL_S: Final = 600.0
_URL_S: Final = 30.0  # for the authorization server to say where to log in
_MOST: Final = 1_000  # the oldest go first
logger = logging.getLogger(__name__)


def _nothing() -> None:
    """What is done once a login has succeeded, if nobody waits for that."""


@dataclass(eq=False, slots=True)
class BegunLogin:
    """One login. *page* is where the browser goes to log in, *answer* what it brings back.

    ended  set once the login has succeeded or failed; *failure* says why it failed
    """

    principal: str
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


class Logins:
    """To be used from one event loop. *record* is awaited with a principal and a server before that login counts; it
    raises ToolSearchError if it must not.
    """

    def __init__(
        self, record: Callable[[str, str], Awaitable[None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._record = record
        self._clock = clock
        self._begun: dict[tuple[str, str], BegunLogin] = {}  # principal and server -> login, oldest first

    async def link(
        self,
        principal: str,
        settings: UpstreamSettings,
        tokens: StoredTokens,
        reached_at: str,
        *,
        on_success: Callable[[], object],
    ) -> str:
        """Where *principal* logs in to the server. *reached_at* is the gateway's address, or "" without HTTP.

        A login that has begun is gone on with. Raises LoginRequiredError if there is nowhere to log in.
        """
        login = self._login(principal, settings, tokens, reached_at)
        login.on_success = on_success
        return await self.page(login) if not reached_at else f"{reached_at}{LOGIN_PATH}/{login.ticket}"

    def begun(self, principal: str, ticket: str) -> BegunLogin | None:
        """The login of *ticket*, if it is one of *principal* and has not ended."""
        return self._found(principal, lambda login: secrets.compare_digest(login.ticket.encode(), ticket.encode()))

    def answered(self, principal: str, state: str) -> BegunLogin | None:
        """The login of *principal* that the authorization server answers with *state*."""
        return self._found(
            principal, lambda login: bool(login.state) and secrets.compare_digest(login.state.encode(), state.encode())
        )

    async def page(self, login: BegunLogin) -> str:
        """Where the browser has to go for *login*. Raises LoginRequiredError if the server cannot say that."""
        if login.task is None:
            login.task = Context().run(asyncio.create_task, self._run(login))
        try:
            return await asyncio.wait_for(asyncio.shield(login.page), _URL_S)
        except TimeoutError as error:
            raise LoginRequiredError(f"{login.server!r} did not say where to log in within {_URL_S:g} s") from error

    async def finished(self, principal: str, server: str, within_s: float) -> bool:
        """Whether the login of *principal* at *server* succeeds *within_s*."""
        login = self._begun.get((principal, server))
        if login is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await login.ended.wait()
        return login.ended.is_set() and not login.failure

    async def aclose(self) -> None:
        """Give up all logins."""
        tasks = [login.task for login in self._begun.values() if login.task is not None]
        self._begun.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _login(self, principal: str, settings: UpstreamSettings, tokens: StoredTokens, reached_at: str) -> BegunLogin:
        key = principal, settings.name
        known = self._begun.get(key)
        is_good = known is not None and self._is_open(known) and known.reached_at == reached_at
        if known is not None and is_good and known.settings == settings:
            return known
        self._drop(key)
        while len(self._begun) >= _MOST:
            self._drop(next(iter(self._begun)))
        login = self._begun[key] = BegunLogin(principal, settings, tokens, reached_at, self._clock() + TTL_S)
        return login

    def _found(self, principal: str, is_meant: Callable[[BegunLogin], bool]) -> BegunLogin | None:
        found = [login for login in self._begun.values() if is_meant(login)]
        return next((login for login in found if login.principal == principal and self._is_open(login)), None)

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
            login.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
            login.page.set_result(url)

        async def answer() -> AuthorizationCodeResult:
            answered = await asyncio.wait_for(asyncio.shield(login.answer), LOGIN_S)
            await self._record(login.principal, login.server)
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
            login.failure = "it failed"
        finally:
            login.ended.set()
            if not login.page.done():
                login.page.set_exception(LoginRequiredError(f"the login to {login.server!r} failed: {login.failure}"))
                login.page.exception()  # marks it as retrieved: nobody may be waiting
