"""The gateway's settings in ``mcp.json``, beside the servers that every client knows.

They have a section of their own, ``toolsearch``, and never stand in the entries of servers. So other clients can go on
using the same file:

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
     "toolsearch": {"rules": {"deny": ["class:destructive"]}, "servers": {"git": {"callTimeoutS": 20}}}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    AfterValidator,
    Field,
    with_config,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from toolsearch.access.claims import CLAIM_BEGINS, claim_of
from toolsearch.access.reach import EVERY_TOOL, GlobSet, Reach, is_glob
from toolsearch.access.settings import (
    AllowRules,
    DenyRules,
    JwtSettings,
    PrincipalSettings,
)
from toolsearch.calling.limits import CallLimits, Repeats, RepeatsOverrides
from toolsearch.calling.rates import LimitName, ToolRate
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.documents.json_values import texts_in
from toolsearch.sessions.options import AnswerOptions, AnswerTokens, SearchOptions
from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_types import Count, Folder, Wait
from toolsearch.settings import EvictionSettings, IndexSettings, RankingSettings, Settings
from toolsearch.tools.definition import Refusal, legal_name
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import SEPARATOR
from toolsearch.upstreams.sections import CHANGEABLE
from toolsearch.upstreams.settings import Credentials, OAuthClient, ServerSettings, UpstreamSettings

_NOBODY = "no_principal"  # error kinds in the style of pydantic's
_TWO_OF_A_NAME = "two_of_a_name"

Exposing: TypeAlias = Literal["fixed", "expand", "whole"]


@dataclass(frozen=True, slots=True)
class GatewayAnswerOptions(AnswerOptions):
    """Answers of the search tool. They may contain whole definitions, so the limit is higher than the library's."""

    answer_tokens: AnswerTokens = 2_000


@dataclass(frozen=True, slots=True)
class GatewayPassThrough(PassThrough):
    """A client with few tools gets all of them listed, because a search would cost more than it saves.

    Servers list a tool more or less without anybody's doing, and no client's list should change completely for that.
    """

    slack: float = 0.25


class ExposureSettings(SettingsSection):
    """How tools are shown to clients."""

    pins: tuple[str, ...] = Field(
        default=(), description="Tools that every client has in its list, if its principal may use them."
    )
    call_tools: Literal["split", "single"] = Field(
        default="split",
        description="The tools that run found tools. split: one each to read, write and destroy; single: one for all.",
    )
    first_list_wait_s: Wait = Field(
        default=2.0,
        description="How long a client's first list waits for servers whose tools are not known yet.",
    )
    clients: Mapping[str, Exposing] = Field(
        default={}, description="How tools are shown to clients. Each key is a glob for names of clients."
    )


class RuleSettings(SettingsSection):
    """Rules for all callers. The rules of a principal can only forbid more."""

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
        default="allow", description="Treatment of a new tool; quarantine: it waits for approval."
    )
    changed: Treatment = Field(
        default="quarantine", description="Treatment of a tool whose definition differs from the approved one."
    )
    suspicious: Treatment = Field(
        default="quarantine", description="Treatment of a tool if the scan finds something in its definition."
    )
    results: ResultTreatment = Field(
        default="flag",
        description="flag: what the scan finds goes into the log and the result's `_meta`. mask: as flag, and secrets "
        "and personal data are replaced. hold: if the scan finds something, the result waits for an operator. allow: "
        "no scan.",
    )


class LimitSettings(SettingsSection):
    """Limits of calls. By default there is no limit."""

    rates: Mapping[LimitName, ToolRate] = Field(
        default={}, description="Limits by principal and tool, each under a name of yours."
    )
    repeats: Repeats = None
    repeats_overrides: RepeatsOverrides = Field(default={})

    @property
    def of_repeats(self) -> CallLimits | None:
        """The limits of repeated calls; None if there are none."""
        if self.repeats is None and not self.repeats_overrides:
            return None
        return CallLimits(None, None, repeats=self.repeats, repeats_overrides=self.repeats_overrides)


class AuditSettings(SettingsSection):
    """The audit records who called which tool, and the outcome, but no arguments or results. By default, it is off.

    A call that cannot be recorded is refused.
    """

    keep_days: Count = Field(default=400, description="Days for which records are kept.")


class HttpSettings(SettingsSection):
    """How the gateway serves HTTP. An option of the command sets the address; the default is loopback."""

    allow_anonymous: bool = Field(
        default=False, description="Serve callers without a token even on addresses other than loopback."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts that the `Host` header may name besides the gateway's own address, as HOST or HOST:PORT.",
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description="Origins of web pages that may send requests, as https://HOST:PORT."
    )
    max_sessions: Count = Field(
        default=10_000, description="Sessions in memory; the least recently used one is evicted first."
    )
    allow_adding: bool = Field(
        default=False,
        description="Let operators add servers. The command of such a server runs with the gateway's rights.",
    )


def _require_principals(principals: Mapping[str, PrincipalSettings]) -> Mapping[str, PrincipalSettings]:
    """Refuse an empty table: an operator who removes the last principal does not want to let everybody in."""
    if not principals:
        raise PydanticCustomError(_NOBODY, "it names nobody; leave it out to serve callers without a token")
    return principals


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
    """The part of a result that is passed on: the parts that are picked, and so many tokens of these."""

    pick: Annotated[list[Pointer], Field(min_length=1)]
    cut: Count


class ToolSettings(SettingsSection):
    """Changes to a tool. The key is the server's own name for the tool, or a glob."""

    enabled: bool = Field(default=True, description="false: no client sees or calls the tool.")
    name: str | None = Field(
        default=None,
        pattern="^[A-Za-z0-9_-]+$",
        description="A new name. The gateway still puts the server's name before it.",
    )
    description: str | None = Field(default=None, min_length=1, description="A new description.")
    arguments: Annotated[Mapping[str, Any], AfterValidator(_with_whole_claims)] = Field(
        default={},
        description="Fixed arguments, which callers neither see nor send. A claim of the caller's JWT replaces "
        "`${claim:NAME}`.",
    )
    hidden: tuple[str, ...] = Field(
        default=(), description="Arguments that callers do not see, and that the server never gets."
    )
    result: ResultPart = Field(
        default=ResultPart(),
        description="Which part of a result is passed on. `pick`: JSON pointers to the wanted parts; `cut`: the "
        "largest number of tokens.",
    )


def _usable(tools: Mapping[str, ToolSettings]) -> Mapping[str, ToolSettings]:
    """Refuse one name for two tools, and keys that are no globs."""
    named: dict[str, str] = {}
    for key, tool in tools.items():
        GlobSet([key])
        if tool.name is None or not tool.enabled:
            continue
        if is_glob(key):
            raise PydanticCustomError(
                _TWO_OF_A_NAME, "{key} fits several tools, so it cannot give a name", {"key": key}
            )
        if tool.name in named:
            told = {"one": named[tool.name], "other": key, "name": tool.name}
            raise PydanticCustomError(_TWO_OF_A_NAME, "{one} and {other} would both be called {name}", told)
        named[tool.name] = key
    return tools


class GatewayServerSettings(ServerSettings):
    """Settings of one server. The entry ``*`` has the defaults for all servers."""

    lazy: bool = Field(
        default=True,
        description="If a server's tools are known from an earlier run, start the server only when it is needed.",
    )
    results: ResultTreatment | None = Field(
        default=None, description="Replaces trust.results for this server; none: trust.results applies."
    )
    credentials: Credentials = Field(
        default="shared",
        description="shared: everybody uses the same login. per-user: each principal logs in. exchange: each caller's "
        "JWT is exchanged (RFC 8693) at oauth.issuer. none: nobody logs in, even if the server asks.",
    )
    oauth: OAuthClient = OAuthClient()
    tools: Annotated[Mapping[str, ToolSettings], AfterValidator(_usable)] = {}

    @property
    def of_connection(self) -> ServerSettings:
        """The part that connections are made by: what else is changed needs no other connection."""
        return ServerSettings(**{name: getattr(self, name) for name in ServerSettings.model_fields})


class GatewaySettings(RankingSettings):
    """Settings of the whole gateway."""

    state_dir: Folder | None = Field(
        default=None,
        description="Folder for lists of tools, approvals and tokens; none: one in the user's state folder.",
    )
    usage: bool = Field(
        default=False, description="Let each principal's searches learn from the calls that follow them."
    )
    search: GatewayAnswerOptions = GatewayAnswerOptions()
    budget: Budget = Budget()
    pass_through: GatewayPassThrough = GatewayPassThrough()
    exposure: ExposureSettings = ExposureSettings()
    rules: RuleSettings = RuleSettings()
    trust: TrustSettings = TrustSettings()
    limits: LimitSettings = LimitSettings()
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


def are_ambiguous(server: str, other: str) -> bool:
    """Whether servers of these names could both have a tool ``a__b__c``: a name must belong to one server."""
    one, two = (legal_name(name) + SEPARATOR for name in (server, other))
    return one.startswith(two) or two.startswith(one)
