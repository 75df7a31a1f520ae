"""The gateway's settings, and how they are read from ``mcp.json``, beside the servers that every client knows.

They have a section of their own, ``toolsearch``, and never stand in the entries of servers. So other clients can go on
using the same file:

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
     "toolsearch": {"rules": {"deny": ["class:destructive"]}, "servers": {"git": {"callTimeoutS": 20}}}}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    model_validator,
    with_config,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from toolsearch.access.claims import CLAIM_BEGINS, claim_of
from toolsearch.access.reach import EVERY_TOOL, GlobSet, Reach, Rule, RuleKind, is_glob
from toolsearch.access.settings import (
    AllowRules,
    DenyRules,
    JwtSettings,
    LimitName,
    PrincipalSettings,
    ToolRate,
    with_hashed_tokens,
)
from toolsearch.calling.limits import CallLimits, PerTool, Repeats, Total
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.documents.json_values import texts_in
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError
from toolsearch.sessions.options import AnswerOptions, AnswerTokens, SearchOptions
from toolsearch.setting_sections import UNKNOWN_SETTING, SettingsSection
from toolsearch.setting_types import Count, Folder, Wait
from toolsearch.settings import EvictionSettings, IndexSettings, RankingSettings, Settings
from toolsearch.tools.definition import Refusal, legal_name
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import SEPARATOR, did_you_mean
from toolsearch.upstreams.config import HttpServer, McpServer, mcp_document, read_mcp_config
from toolsearch.upstreams.sections import CHANGEABLE, GATEWAY
from toolsearch.upstreams.settings import LOOPBACK_PAGE, Credentials, OAuthClient, ServerSettings, UpstreamSettings

_NOBODY = "no_principal"  # error kinds in the style of pydantic's
_UNUSABLE_OAUTH = "unusable_oauth"
_TWO_OF_A_NAME = "two_of_a_name"
_MAX_SHOWN = 60  # characters of a name that a message shows

Exposing: TypeAlias = Literal["fixed", "expand", "whole"]


@dataclass(frozen=True, slots=True)
class GatewayAnswerOptions(AnswerOptions):
    """The answers of the search. They may hold whole definitions, so they may be longer."""

    answer_tokens: AnswerTokens = 2_000


@dataclass(frozen=True, slots=True)
class GatewayPassThrough(PassThrough):
    """A client with few tools is listed all of them, because a search would cost more than it saves.

    Servers list a tool more or less without anybody's doing, and no client's list should change completely for that.
    """

    slack: float = 0.25


class ExposureSettings(SettingsSection):
    """The tools that clients are listed."""

    pins: tuple[str, ...] = Field(default=(), description="Tools that every client in whose reach they are is listed.")
    call_tools: Literal["split", "single"] = Field(
        default="split", description="One call tool each for reading, writing and destroying, or a single one."
    )
    first_list_wait_s: Wait = Field(
        default=2.0,
        description="How long the first list waits for servers whose tools are not known from before.",
    )
    clients: Mapping[str, Exposing] = Field(
        default={}, description="How clients are shown tools, by globs of the names that they give themselves."
    )


class RuleSettings(SettingsSection):
    """The tools that anybody may find and call at most. Rules of a principal only narrow them."""

    allow: AllowRules = EVERY_TOOL
    deny: DenyRules = ()

    @property
    def reach(self) -> Reach:
        return Reach.parse(self.allow, self.deny)


Treatment: TypeAlias = Literal["warn", "quarantine", "allow"]
ResultTreatment: TypeAlias = Literal["flag", "mask", "hold", "allow"]


class TrustSettings(SettingsSection):
    """How new, changed and suspicious definitions are treated."""

    first_seen: Literal["allow", "quarantine"] = Field(
        default="allow", description="A tool that is seen for the first time; quarantine: it waits for approval."
    )
    changed: Treatment = Field(
        default="quarantine", description="A tool whose definition is another than the one that was approved."
    )
    suspicious: Treatment = Field(
        default="quarantine", description="A tool in whose definition the scan finds something."
    )
    results: ResultTreatment = Field(
        default="flag",
        description="Log what the scan finds in results, and name it in their _meta. mask: also replace secrets and "
        "what is personal. hold: pass on no result in which it finds something.",
    )


@dataclass(frozen=True, slots=True)
class SessionCallLimits(CallLimits):
    """Limits of the calls of one client session. There are none unless they are set: MCP does not tell of turns.

    *rates* hold for all sessions of a principal together.
    """

    per_tool: PerTool = None
    total: Total = None
    repeats: Repeats = None
    rates: Annotated[
        Mapping[LimitName, ToolRate], Field(description="Limits by principal and tool, each under a name of yours.")
    ] = field(default_factory=dict[str, ToolRate])

    @property
    def of_sessions(self) -> Self | None:
        """Those that hold for a session; None if they limit nothing."""
        limits = replace(self, rates={})
        return None if limits == type(self)() else limits


class AuditSettings(SettingsSection):
    """The record of who called what, and with which outcome, without contents. There is none without this section.

    A call that cannot be recorded is refused.
    """

    keep_days: Count = Field(default=400, description="Days that the records are kept.")


class HttpSettings(SettingsSection):
    """How the gateway is served over HTTP. The address is an option of the command, and by default loopback."""

    allow_anonymous: bool = Field(
        default=False, description="Serve callers without a token on other addresses than loopback, too."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Hosts that requests may name beside the address it is bound to, as HOST or HOST:PORT."
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description="Origins of web pages that may send requests, as https://HOST:PORT."
    )
    max_sessions: Count = Field(default=10_000, description="Sessions kept; the least recently used one goes first.")


def _require_principals(principals: Mapping[str, PrincipalSettings]) -> Mapping[str, PrincipalSettings]:
    """Refuse an empty table: an operator who removes the last principal does not want to let everybody in."""
    if not principals:
        raise PydanticCustomError(_NOBODY, "it names nobody; leave it out if nobody has to say who they are")
    return principals


def _secret(given: object, info: ValidationInfo) -> object:
    """Read the secret that *given* refers to. The context of the validation are the `References`."""
    if given is None or isinstance(given, SecretStr):
        return given
    references: References = info.context or References({})
    try:
        return SecretStr(references.secret(given))
    except BadSettingError as error:
        raise PydanticCustomError(_UNUSABLE_OAUTH, "{reason}", {"reason": str(error)}) from error


_LOOPBACK: Final = r"^http://(127\.0\.0\.1|localhost|\[::1\])(:[1-9][0-9]{0,4})?(/[!-\"$->@-~]*)?$"
_SCOPE: Final = r"^[!#-\[\]-~]+$"  # RFC 6749, 3.3


def _with_usable_port(address: str) -> str:
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        raise PydanticCustomError(_UNUSABLE_OAUTH, "its port is above 65535") from error
    return address


class OAuthSettings(SettingsSection):
    """How the gateway logs in to a server."""

    client_id: str = Field(
        default="",
        description="The id of the gateway's registration, or the https URL of its client id metadata document; empty: "
        "the gateway registers itself.",
    )
    client_secret: Annotated[SecretStr | None, BeforeValidator(_secret)] = Field(
        default=None,
        description="`${NAME}`, `${file:PATH}` or `${keyring:SERVICE/NAME}`: where the secret is. It wants an issuer.",
    )
    issuer: str | None = Field(
        default=None, description="The only authorization server that logins are made at, as it names itself."
    )
    redirect_uri: Annotated[str, Field(pattern=_LOOPBACK), AfterValidator(_with_usable_port)] = Field(
        default=LOOPBACK_PAGE,
        description="The registered address on this computer to which the browser returns. Without a port, any free "
        "one is used.",
    )
    scopes: tuple[Annotated[str, Field(pattern=_SCOPE)], ...] = Field(
        default=(), description="The only scopes that a login asks for at first; empty: those that the server names."
    )

    @model_validator(mode="after")
    def _has_issuer(self) -> Self:
        if self.client_secret is not None and not (self.issuer and self.client_id):
            reason = "clientSecret wants a clientId and an issuer beside it: the authorization server that may get it"
            raise PydanticCustomError(_UNUSABLE_OAUTH, reason)
        return self

    @property
    def client(self) -> OAuthClient:
        secret = self.client_secret.get_secret_value() if self.client_secret is not None else None
        return OAuthClient(self.client_id, secret, self.issuer, self.redirect_uri, self.scopes)


_NO_CLAIM: Final = "unusable_claim"


def _with_whole_claims(arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    """Refuse a claim within a longer text: what a caller's issuer writes could change the meaning of the rest."""
    for text in texts_in(arguments):
        if CLAIM_BEGINS in text and claim_of(text) is None:
            raise PydanticCustomError(_NO_CLAIM, "a claim has to be the whole value, as ${claim:NAME}")
    return arguments


Pointer: TypeAlias = Annotated[str, Field(pattern="^/")]


@with_config(extra="forbid")
class ResultPart(TypedDict, total=False):
    """The part of a result that is passed on: of it what is picked, and of that so many tokens."""

    pick: Pointer | Annotated[list[Pointer], Field(min_length=1)]
    cut: Count


class ToolSettings(SettingsSection):
    """How clients have a tool of a server, which is given by the server's own name for it, or tools that fit a glob."""

    enabled: bool = Field(default=True, description="false: as if the server did not have it.")
    name: str | None = Field(
        default=None, pattern="^[A-Za-z0-9_-]+$", description="Another name, behind that of the server."
    )
    description: str | None = Field(default=None, min_length=1, description="Another description.")
    arguments: Annotated[Mapping[str, Any], AfterValidator(_with_whole_claims)] = Field(
        default={},
        description="Arguments that no caller sees or sends, and their values; `${claim:NAME}` is that of the caller's "
        "JWT.",
    )
    hidden: tuple[str, ...] = Field(default=(), description="Arguments that no caller sees, and that are never sent.")
    result: ResultPart = Field(
        default=ResultPart(),
        description="The part of a result that is passed on: `cut`, so many tokens at most; `pick`, only what one or "
        "several JSON pointers name.",
    )

    @property
    def pick(self) -> tuple[str, ...]:
        pointers = self.result.get("pick", ())
        return (pointers,) if isinstance(pointers, str) else tuple(pointers)


def _usable(tools: Mapping[str, ToolSettings]) -> Mapping[str, ToolSettings]:
    """Refuse one name for two tools, and keys that are no globs."""
    named: dict[str, str] = {}
    for key, tool in tools.items():
        GlobSet([key])
        if tool.name is None or not tool.enabled:
            continue
        if is_glob(key):
            raise PydanticCustomError(
                _TWO_OF_A_NAME, "{key} stands for several tools, so it gives no name", {"key": key}
            )
        if tool.name in named:
            told = {"one": named[tool.name], "other": key, "name": tool.name}
            raise PydanticCustomError(_TWO_OF_A_NAME, "{one} and {other} would both be called {name}", told)
        named[tool.name] = key
    return tools


class GatewayServerSettings(ServerSettings):
    """Settings of one server; the entry ``*`` gives the defaults of all."""

    lazy: bool = Field(default=True, description="Start it only when it is needed, if its tools are known from before.")
    results: ResultTreatment | None = Field(default=None, description="As trust.results, for this server; none: that.")
    oauth: OAuthSettings = OAuthSettings()
    credentials: Credentials = Field(
        default="shared",
        description="shared: everybody uses the same login. per-user: each principal logs in. exchange: each caller's "
        "JWT is exchanged (RFC 8693) at oauth.issuer. none: nobody logs in, even if the server asks for it.",
    )
    tools: Annotated[Mapping[str, ToolSettings], AfterValidator(_usable)] = {}

    @property
    def of_connection(self) -> ServerSettings:
        """The part that connections are made by: what else is changed needs no other connection."""
        return ServerSettings(**{name: getattr(self, name) for name in ServerSettings.model_fields})


class GatewaySettings(RankingSettings):
    """Settings of the whole gateway."""

    state_dir: Folder | None = Field(
        default=None, description="Where listings, approvals and tokens are kept; none: the user's own place."
    )
    linger_s: Wait = Field(
        default=300.0, description="How long the background process of clients over stdio stays after the last of them."
    )
    usage: bool = Field(default=False, description="Let searches learn, by principal, from what clients then call.")
    search: GatewayAnswerOptions = GatewayAnswerOptions()
    budget: Budget = Budget()
    pass_through: GatewayPassThrough = GatewayPassThrough()
    exposure: ExposureSettings = ExposureSettings()
    rules: RuleSettings = RuleSettings()
    trust: TrustSettings = TrustSettings()
    limits: SessionCallLimits = SessionCallLimits()
    audit: AuditSettings | None = None
    principals: Annotated[Mapping[str, PrincipalSettings], AfterValidator(_require_principals)] = Field(
        default={}, description="Without any, everybody is 'local'."
    )
    jwt: JwtSettings | None = None
    http: HttpSettings = HttpSettings()
    servers: Mapping[str, GatewayServerSettings] = {}

    @property
    def engine_settings(self) -> Settings:
        """What the engine behind the gateway is built from."""
        return Settings(
            index=IndexSettings(**{name: getattr(self, name) for name in RankingSettings.model_fields}),
            search=SearchOptions(**asdict(self.search)),
            budget=self.budget,
            pass_through=self.pass_through,
            eviction=EvictionSettings(max_sessions=self.http.max_sessions),
        )

    @property
    def state_folder(self) -> Path:
        """Where listings, pins and tokens are kept; it need not exist yet."""
        return self.state_dir or platformdirs.user_state_path("toolsearch", appauthor=False) / "gateway"

    @property
    def reached_at(self) -> str:
        """The address by which clients reach the gateway over HTTP, as far as the resource of their tokens says it."""
        parts = urlsplit((self.jwt.resource if self.jwt else None) or "")
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""

    @property
    def serves_strangers(self) -> bool:
        """Whether others than the user of this machine may be served as the one local user."""
        is_anybody = not self.principals and self.jwt is None
        return is_anybody and (self.http.allow_anonymous or bool(self.http.allowed_hosts))

    def needing_restart(self, other: GatewaySettings) -> list[str]:
        """The sections and settings of *other* that a running gateway cannot change to, as they are written."""
        return [name for name in self.changes(other) if name not in CHANGEABLE]

    def changes(self, other: GatewaySettings) -> list[str]:
        """The sections and settings that differ in *other*, as they are written."""
        return sorted(to_camel(name) for name in type(self).model_fields if getattr(self, name) != getattr(other, name))

    def of_server(self, name: str) -> GatewayServerSettings:
        """What holds for *name*, its own entry over that of ``*``."""
        chosen = [self.servers[key].model_dump(exclude_unset=True) for key in ("*", name) if key in self.servers]
        return GatewayServerSettings.model_validate({key: value for each in chosen for key, value in each.items()})

    @cached_property
    def treatment_of(self) -> Callable[[str], ResultTreatment]:
        """Gives what becomes of the results of the server of a name."""

        @cache
        def of(server: str) -> ResultTreatment:
            return self.of_server(server).results or self.trust.results

        return of


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """A configuration that was read.

    refused   servers that cannot be used as they are written
    warnings  what was ignored
    """

    origin: str
    upstreams: tuple[UpstreamSettings, ...]
    settings: GatewaySettings
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    def changes(self, other: GatewayConfig) -> list[str]:
        """The sections and servers that differ in *other*, as they are written."""
        ours, theirs = ({each.name: each for each in config.upstreams} for config in (self, other))
        servers = [f"mcpServers.{name}" for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        return [*self.settings.changes(other.settings), *servers]

    @property
    def notices(self) -> tuple[str, ...]:
        """What people have to know: the servers that are left out, and the warnings."""
        left_out = (f"server {each.name!r} is left out: {each.reason}" for each in self.refused)
        return (*left_out, *self.warnings)


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
        f"{mcp.origin}: settings for {name!r}, which is no server{did_you_mean(name, known)}"
        for name in settings.servers
        if name not in known
    ]
    warnings += [
        f"{mcp.origin}: the rule {rule!r} is about no server" for rule in _rules_of_unknown_servers(settings, known)
    ]
    return GatewayConfig(
        mcp.origin,
        tuple(_upstream(server, settings) for server in kept),
        settings,
        refused=(*mcp.refused, *ambiguous, *unusable),
        warnings=tuple(warnings),
    )


def _upstream(server: McpServer, settings: GatewaySettings) -> UpstreamSettings:
    policy = settings.of_server(server.name)
    oauth = policy.oauth.client
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
    if any(name.lower() == "authorization" for name in (*server.headers, *server.claimed)):
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
            raise BadSettingError(f"the section {key!r} must be spelt {GATEWAY!r}: as it is, none of it would hold")


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


def are_ambiguous(server: str, other: str) -> bool:
    """Whether servers of these names could both have a tool ``a__b__c``: a name must belong to one server."""
    one, two = (legal_name(name) + SEPARATOR for name in (server, other))
    return one.startswith(two) or two.startswith(one)


def _without_ambiguous(servers: tuple[McpServer, ...], origin: str) -> tuple[list[McpServer], list[Refusal]]:
    """Refuse the second of two servers whose names are ambiguous."""
    refused: dict[str, Refusal] = {}
    for first, second in combinations(servers, 2):
        if are_ambiguous(first.name, second.name):
            reason = f"its tools' names could be those of {first.name!r}; rename one of the two"
            refused.setdefault(second.name, Refusal(second.name, origin, reason))
    return [server for server in servers if server.name not in refused], list(refused.values())
