"""What ``mcp.json`` says to the gateway: the servers as every client knows them, and the section ``toolsearch``.

What is ours stands in a section of its own and never in the servers' entries, so that the same file goes on serving
every other client:

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
     "toolsearch": {"rules": {"deny": ["class:destructive"]}, "servers": {"git": {"callTimeoutS": 20}}}}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import platformdirs
from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from toolsearch.access.globs import is_glob
from toolsearch.access.reach import EVERY_TOOL, Rule, RuleKind
from toolsearch.access.settings import JwtSettings, PrincipalSettings, Rules
from toolsearch.access.token_hashes import with_hashed_tokens
from toolsearch.calling.limits import CallLimits
from toolsearch.documents.files import read_document
from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadSettingError
from toolsearch.setting_sections import UNKNOWN_SETTING, SettingsSection
from toolsearch.tools.definition import legal_name
from toolsearch.tools.naming import SEPARATOR, did_you_mean
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.config import McpServer, read_mcp_config
from toolsearch.upstreams.settings import ServerSettings, UpstreamSettings
from toolsearch_indexes.encoders.opening import BUILT_IN

SECTION = "toolsearch"
_NOBODY = "no_principal"  # as pydantic's kinds of errors are named
_MAX_SHOWN = 60  # characters of a name in a message

Exposing: TypeAlias = Literal["expand", "hedge", "fixed"]


class ExposureSettings(SettingsSection):
    """What clients are shown; *clients* maps globs of names that clients give themselves to a mode."""

    limit: PositiveInt = 5
    max_limit: PositiveInt = 10
    answer_tokens: PositiveInt = Field(default=2_000, description="What one answer of the search may take.")
    pins: tuple[str, ...] = Field(default=(), description="Tools that everybody in whose reach they are is shown.")
    call_tools: Literal["split", "single"] = "split"
    pass_through_tools: NonNegativeInt = Field(default=10, description="Show so few tools whole; 0: never.")
    pass_through_tokens: NonNegativeInt = 1_500
    first_list_wait_s: NonNegativeFloat = Field(
        default=2.0, description="After the start, for servers whose tools are not known from last time."
    )
    session_tools: PositiveInt = Field(default=50, description="What a search may have put in a client's list at most.")
    session_tokens: PositiveInt = 20_000
    clients: Mapping[str, Exposing] = {}


class RuleSettings(SettingsSection):
    """Rules as `Rule.parse` takes them; they hold for everybody, before those of a principal. ``[]`` allows nothing."""

    allow: Rules = EVERY_TOOL
    deny: Rules = ()


class TrustSettings(SettingsSection):
    """What becomes of definitions that are seen for the first time, that changed, or that the scan finds fault with."""

    first_seen: Literal["allow", "quarantine"] = "allow"
    changed: Literal["warn", "quarantine", "allow"] = "quarantine"
    suspicious: Literal["warn", "quarantine", "allow"] = "quarantine"
    results: Literal["flag", "allow"] = Field(
        default="flag", description="Log what the scan finds in results, and name it in their _meta; they are not held."
    )


class CallLimitSettings(SettingsSection):
    """Of the calls of one client session; there are none unless they are set, since MCP does not tell of turns."""

    per_tool: NonNegativeInt | None = Field(default=None, description="Calls of one tool.")
    tools: Mapping[str, NonNegativeInt | None] = Field(default={}, description="The same of single tools, by name.")
    total: NonNegativeInt | None = None
    repeats: NonNegativeInt | None = Field(default=None, description="Identical calls in a row with the same result.")

    @property
    def call_limits(self) -> CallLimits | None:
        """None if nothing is limited."""
        limits = CallLimits(self.per_tool, self.total, per_tool_overrides=self.tools, repeats=self.repeats)
        return None if limits == CallLimits(None, None, repeats=None) else limits


class HttpSettings(SettingsSection):
    """Bound to loopback unless told otherwise; the address itself is an option of the command."""

    allow_anonymous: bool = Field(default=False, description="Beyond loopback too, where anybody may come by.")
    allowed_hosts: tuple[str, ...] = Field(default=(), description="As HOST or HOST:PORT, beside what it is bound to.")
    allowed_origins: tuple[str, ...] = Field(default=(), description="Of pages that may ask, as https://HOST:PORT.")
    max_sessions: PositiveInt = 10_000
    session_idle_s: PositiveFloat = 1_800.0
    max_body_bytes: PositiveInt = 4 * 1024 * 1024
    max_connections: PositiveInt = Field(
        default=10_000, description="At once, and never more than half of the files that the process may have open."
    )
    request_timeout_s: PositiveFloat = Field(
        default=30.0, description="For a request to arrive whole, headers and body; its answer may take longer."
    )


def _naming_somebody(principals: Mapping[str, PrincipalSettings]) -> Mapping[str, PrincipalSettings]:
    """Whoever takes the last principal out of the file does not mean to let everybody in. Not asked of the default."""
    if not principals:
        raise PydanticCustomError(_NOBODY, "it names nobody; leave it out if nobody has to say who they are")
    return principals


class GatewaySettings(SettingsSection):
    """The section ``toolsearch``."""

    state_dir: Path | None = Field(default=None, description="Listings, pins and tokens; None: the user's own place.")
    strategy: Literal["auto", "hybrid", "keyword", "semantic", "regex"] = "auto"
    encoder: str | None = Field(
        default=BUILT_IN, description="built-in, a folder, or the name of a sentence-transformers model; null: none."
    )
    exposure: ExposureSettings = ExposureSettings()
    rules: RuleSettings = RuleSettings()
    trust: TrustSettings = TrustSettings()
    limits: CallLimitSettings = CallLimitSettings()
    usage: bool = Field(default=False, description="Let searches learn, by principal, from what clients then call.")
    principals: Annotated[Mapping[str, PrincipalSettings], AfterValidator(_naming_somebody)] = Field(
        default={}, description="None: everybody is 'local'."
    )
    jwt: JwtSettings | None = None
    http: HttpSettings = HttpSettings()
    servers: Mapping[str, Mapping[str, Any]] = {}

    @property
    def state_folder(self) -> Path:
        """Where listings, pins and tokens are kept; it need not exist yet."""
        return self.state_dir or platformdirs.user_state_path("toolsearch", appauthor=False) / "gateway"

    def of_server(self, name: str) -> ServerSettings:
        """What holds for *name*, its own entry over that of ``*``."""
        return ServerSettings.model_validate({**self.servers.get("*", {}), **self.servers.get(name, {})})


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """A configuration, read. *refused* are servers that cannot be used as written, *warnings* what was left alone."""

    origin: str
    upstreams: tuple[UpstreamSettings, ...]
    settings: GatewaySettings
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()


def read_gateway_config(config: str | Path | Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Read a configuration, a path or the document itself.

    Raises SourceError if it holds no servers, and BadSettingError, which names the place, for a setting that cannot be
    used: a rule or a limit that was left out by mistake would be worse than a gateway that does not start.
    """
    document = config if isinstance(config, Mapping) else read_document(Path(config))
    section: object = document.get(SECTION, {}) if is_object(document) else {}
    _require_section_name(document if is_object(document) else {})
    settings = _read_section(with_hashed_tokens(section, environment))
    mcp = read_mcp_config(config, environment)
    kept, ambiguous = _without_ambiguous(mcp.servers, mcp.origin)
    warnings = [*mcp.warnings]
    known = {server.name for server in mcp.servers} | {refusal.name for refusal in mcp.refused} | {"*"}
    warnings += [
        f"{mcp.origin}: settings for {name!r}, which is no server{did_you_mean(name, known)}"
        for name in settings.servers
        if name not in known
    ]
    warnings += [f"{mcp.origin}: the rule {rule!r} is about no server" for rule in _pointless_rules(settings, known)]
    return GatewayConfig(
        mcp.origin,
        tuple(UpstreamSettings(server, _treated(settings, server.name), settings.state_folder) for server in kept),
        settings,
        refused=(*mcp.refused, *ambiguous),
        warnings=tuple(warnings),
    )


def _require_section_name(document: Mapping[str, Any]) -> None:
    """``toolSearch`` or ``tool_search`` would be left alone as any other client's key, and with it all rules."""
    for key in document:
        if key != SECTION and "".join(filter(str.isalnum, key)).casefold() == SECTION:
            raise BadSettingError(f"the section {key!r} must be spelt {SECTION!r}: as it is, none of it would hold")


def _pointless_rules(settings: GatewaySettings, servers: Collection[str]) -> list[str]:
    """The rules that name a server which there is not: a deny rule with a typo denies nothing."""
    texts = [*settings.rules.allow, *settings.rules.deny]
    for principal in settings.principals.values():
        texts += [*principal.allow, *principal.deny]
    rules = dict.fromkeys(map(Rule.parse, texts))
    return [
        str(rule)
        for rule in rules
        if rule.kind is RuleKind.SERVER and not is_glob(rule.pattern) and rule.pattern not in servers
    ]


def _read_section(section: object) -> GatewaySettings:
    try:
        return GatewaySettings.model_validate(section)
    except ValidationError as error:
        raise _bad_setting(SECTION, error) from error


def _treated(settings: GatewaySettings, name: str) -> ServerSettings:
    try:
        return settings.of_server(name)
    except ValidationError as error:
        raise _bad_setting(f"{SECTION}.servers.{name}", error) from error


def _bad_setting(place: str, error: ValidationError) -> BadSettingError:
    first = error.errors(include_input=False, include_url=False)[0]  # what was put in may be a secret
    unknown = [first["ctx"]["name"][:_MAX_SHOWN]] if first["type"] == UNKNOWN_SETTING and "ctx" in first else []
    where = ".".join([place, *map(str, first["loc"]), *unknown])
    return BadSettingError(f"the setting {where} cannot be used: {first['msg']}")


def _without_ambiguous(servers: tuple[McpServer, ...], origin: str) -> tuple[list[McpServer], list[Refusal]]:
    """Refuse the later of two servers where ``a__b__c`` could be a tool of either: a name has to say whose it is."""
    refused: dict[str, Refusal] = {}
    for first, second in combinations(servers, 2):
        one, other = (legal_name(server.name) + SEPARATOR for server in (first, second))
        if one.startswith(other) or other.startswith(one):
            reason = f"its tools' names could be those of {first.name!r}; rename one of the two"
            refused.setdefault(second.name, Refusal(second.name, origin, reason))
    return [server for server in servers if server.name not in refused], list(refused.values())
