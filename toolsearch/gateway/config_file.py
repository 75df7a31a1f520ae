"""The configuration file of a gateway: read at the start, and again whenever somebody has changed it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from toolsearch.documents.reading import read_bytes
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.settings import GatewayConfig, read_gateway_config
from toolsearch.upstreams.config import mcp_document
from toolsearch.upstreams.faults import RepeatedWarning

logger = logging.getLogger(__name__)


class ConfigFile:
    """The file at *path*, in which ``${NAME}`` is filled in from *environment*.

    check    raises ToolSearchError if the gateway must not change to a content; called before each try
    applied  the content that the gateway works by
    problem  why the gateway does not work by the file as it is now; "" if it does
    """

    def __init__(
        self,
        path: Path,
        environment: Mapping[str, str],
        *,
        check: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        self.path = path
        self.applied = b""
        self.problem = ""
        self._environment = environment
        self._check = check
        self._looking = asyncio.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._seen = b""  # the content at the last look
        self._ending = asyncio.Event()
        self._warning = RepeatedWarning(logger)

    def read(self) -> GatewayConfig:
        """Read the configuration to start with. Raises as `read_gateway_config`."""
        content = read_bytes(self.path)
        config = self._config_in(content)
        self.applied = self._seen = content
        return config

    def on_applied(self, listener: Callable[[], None]) -> None:
        """Call *listener* when the gateway has changed to a new content."""
        self._listeners.append(listener)

    async def follow(self, apply: Callable[[GatewayConfig], Awaitable[None]], every_s: float) -> None:
        """`look` until `stop` is called. A change that is being applied is finished."""
        while not self._ending.is_set():
            await self.look(apply)
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._ending.wait()

    def stop(self) -> None:
        self._ending.set()

    async def reload(self, apply: Callable[[GatewayConfig], Awaitable[None]]) -> None:
        """Have the content applied at once: whoever asks for that is not in the middle of writing it."""
        for _ in range(2):
            await self.look(apply)

    async def look(self, apply: Callable[[GatewayConfig], Awaitable[None]]) -> None:
        """Have a new content applied, once two looks in a row have found it. *apply* raises ToolSearchError if the
        gateway cannot change to it; then the next look tries again.

        One look is not enough, because an editor may be writing the file: half a YAML document can be a valid one in
        which the rules are missing.
        """
        async with self._looking:
            await self._look(apply)

    async def _look(self, apply: Callable[[GatewayConfig], Awaitable[None]]) -> None:
        try:
            content = await asyncio.to_thread(read_bytes, self.path)
            before, self._seen = self._seen, content
            if content != self.applied:
                if content != before:
                    return
                config = await asyncio.to_thread(self._config_in, content)
                if self._check is not None:
                    await self._check(content)
                await apply(config)
                self.applied = content
                logger.info("%s has changed, and the gateway follows it", self.path.name)
                for notice in config.notices:
                    logger.warning("%s", notice)
                for listener in self._listeners:
                    listener()
        except (ToolSearchError, OSError) as error:
            self.problem = f"{self.path.name} has changed, but the gateway goes on as before: {error}"
            self._warning.warn(self.problem)
        else:
            self.problem = ""
            self._warning.is_well()

    def _config_in(self, content: bytes) -> GatewayConfig:
        document = mcp_document(self.path, content)
        return read_gateway_config(document, self._environment, origin=self.path.name, folder=self.path.parent)
