"""The configuration file of a gateway: read at the start, and again whenever somebody has changed it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from toolsearch.access.reach import Rule, RuleKind, is_glob
from toolsearch.access.settings import with_hashed_tokens
from toolsearch.chores import is_set_within
from toolsearch.documents.reading import read_bytes
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError, ToolSearchError
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings, are_ambiguous
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.setting_sections import UNKNOWN_SETTING
from toolsearch.tools.definition import Refusal
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import did_you_mean
from toolsearch.upstreams.config import HttpServer, McpServer, mcp_document, read_mcp_config
from toolsearch.upstreams.sections import GATEWAY, gateway_section
from toolsearch.upstreams.settings import UpstreamSettings

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
        self.environment = environment
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
            await is_set_within(self._ending, every_s)

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
        return read_gateway_config(document, self.environment, origin=self.path.name, folder=self.path.parent)


_MAX_SHOWN: Final = 60  # characters of a name that a message shows


def read_gateway_config(
    config: str | Path | Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    origin: str = "mcpServers",
    folder: Path | None = None,
) -> GatewayConfig:
    """Read a configuration from a path, or from the document itself, which *origin* names. A document without a
    *folder* may refer to no file, and not to the keyring.

    Raises SourceError if there are no servers in it. Raises BadSettingError, with the place, for a setting that cannot
    be used: it is better that a gateway does not start than that it starts without a rule or a limit.
    """
    if isinstance(config, Mapping):
        document = config
    else:
        origin, document, folder = Path(config).name, mcp_document(Path(config)), Path(config).parent
    _require_section_name(document)
    references = References(environment, folder)
    settings = _read_section(with_hashed_tokens(document.get(GATEWAY, {}), references), references)
    mcp = read_mcp_config(document, environment, origin=origin, folder=folder)
    kept, ambiguous = _without_ambiguous(mcp.servers, mcp.origin)
    kept, unusable = _without_unusable(kept, settings, mcp.origin)
    warnings = list(mcp.warnings)
    known = {server.name for server in mcp.servers} | {refusal.name for refusal in mcp.refused} | {"*"}
    warnings += [
        f"{mcp.origin}: there are settings for {name!r}, but no such server{did_you_mean(name, known)}"
        for name in settings.servers
        if name not in known
    ]
    warnings += [
        f"{mcp.origin}: the rule {rule!r} names a server that does not exist"
        for rule in _rules_of_unknown_servers(settings, known)
    ]
    return GatewayConfig(
        mcp.origin,
        tuple(_upstream(server, settings) for server in kept),
        settings,
        refused=(*mcp.refused, *ambiguous, *unusable),
        warnings=tuple(warnings),
    )


def audit_settings(document: JsonObject, environment: Mapping[str, str], *, folder: Path) -> GatewaySettings:
    """The settings in *document* that say whether and where changes are recorded. The others need not be usable now.

    Raises BadSettingError.
    """
    section = gateway_section(document) or {}
    kept = {name: section[name] for name in ("audit", "stateDir", "state_dir") if name in section}
    return _read_section(kept, References(environment, folder))


def _upstream(server: McpServer, settings: GatewaySettings) -> UpstreamSettings:
    policy = settings.of_server(server.name)
    oauth = policy.oauth
    if oauth.secret:
        server = replace(server, secrets=server.secrets | {oauth.secret})  # a known secret is removed from messages
    return UpstreamSettings(
        server,
        policy.of_connection,
        settings.state_folder,
        lazy=policy.lazy,
        oauth=oauth,
        credentials=policy.credentials,
    )


def _without_unusable(
    servers: list[McpServer], settings: GatewaySettings, origin: str
) -> tuple[list[McpServer], list[Refusal]]:
    """Refuse servers whose own entry does not fit the credentials that they are to get."""
    reasons = {server.name: _credentials_problem(server, settings) for server in servers}
    refused = [Refusal(name, origin, reason) for name, reason in reasons.items() if reason]
    return [server for server in servers if not reasons[server.name]], refused


def _credentials_problem(server: McpServer, settings: GatewaySettings) -> str:
    policy = settings.of_server(server.name)
    if policy.credentials in ("shared", "none"):
        return ""
    if not isinstance(server, HttpServer):
        return f"credentials are {policy.credentials!r}, which only a server over HTTP can be"
    if server.is_authorized:
        return f"credentials are {policy.credentials!r}, and its headers have an Authorization; leave one of them out"
    if policy.credentials == "per-user" and settings.serves_strangers:
        return "credentials are 'per-user', and over HTTP nobody says who they are; set toolsearch.principals or jwt"
    if policy.credentials == "exchange" and not (policy.oauth.client_id and policy.oauth.issuer):
        return "credentials are 'exchange', which wants oauth with a clientId and the issuer that exchanges the tokens"
    return ""


def _require_section_name(document: Mapping[str, Any]) -> None:
    """Refuse ``toolSearch`` and ``tool_search``: such a section would be ignored with all its rules, like other
    clients' keys.
    """
    for key in document:
        if key != GATEWAY and "".join(filter(str.isalnum, key)).casefold() == GATEWAY:
            raise BadSettingError(f"the section {key!r} would be ignored; write it as {GATEWAY!r}")


def _rules_of_unknown_servers(settings: GatewaySettings, servers: Collection[str]) -> list[str]:
    """The rules that name a server that does not exist: a deny rule with a typing error denies nothing."""
    texts = [*settings.rules.allow, *settings.rules.deny]
    for principal in settings.principals.values():
        texts += [*principal.allow, *principal.deny]
    rules = dict.fromkeys(map(Rule.parse, texts))
    return [
        str(rule)
        for rule in rules
        if rule.kind is RuleKind.SERVER and not is_glob(rule.pattern) and rule.pattern not in servers
    ]


def _read_section(section: object, references: References) -> GatewaySettings:
    try:
        return GatewaySettings.model_validate(section, context=references)
    except ValidationError as error:
        raise _bad_setting(GATEWAY, error) from error


def _bad_setting(place: str, error: ValidationError) -> BadSettingError:
    first = error.errors(include_input=False, include_url=False)[0]  # values are left out because they may be secrets
    unknown = [first["ctx"]["name"][:_MAX_SHOWN]] if first["type"] == UNKNOWN_SETTING and "ctx" in first else []
    where = ".".join([place, *map(str, first["loc"]), *unknown])
    return BadSettingError(f"the setting {where} cannot be used: {first['msg'].removeprefix('Value error, ')}")


def _without_ambiguous(servers: tuple[McpServer, ...], origin: str) -> tuple[list[McpServer], list[Refusal]]:
    """Refuse the second of two servers whose names are ambiguous."""
    refused: dict[str, Refusal] = {}
    for first, second in combinations(servers, 2):
        if are_ambiguous(first.name, second.name):
            reason = f"its tools could have the same names as those of {first.name!r}; rename one of the two servers"
            refused.setdefault(second.name, Refusal(second.name, origin, reason))
    return [server for server in servers if server.name not in refused], list(refused.values())
