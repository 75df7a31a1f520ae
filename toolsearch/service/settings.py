"""The settings of the service, in addition to those of the library, from the same environment and TOML file."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from toolsearch.access.settings import IssuerSettings
from toolsearch.calling.rates import LimitName, ToolRate
from toolsearch.gateway.settings import TrustSettings
from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_types import Count, Seconds
from toolsearch.settings import Settings
from toolsearch.upstreams.settings import ServerSettings

_DAY_S = 86_400.0


class ServeSettings(SettingsSection):
    """How clients reach the service. An option of the command sets the address on which it listens."""

    public_url: str | None = Field(
        default=None, description="Where clients reach the service, as https://HOST; none: where it listens."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts that the `Host` header may name besides the service's address, as HOST or HOST:PORT.",
    )
    max_body_bytes: Count = Field(default=16 * 1024 * 1024, description="Most bytes in the body of a request.")
    request_timeout_s: Seconds = Field(default=60.0, description="Time limit for a request, except for imports.")
    shutdown_timeout_s: Count = Field(
        default=30, description="Whole seconds for running requests to end when the service shuts down."
    )
    local_metrics: bool = Field(
        default=False, description="Let programs on this machine read /metrics without an operator's key."
    )
    session_ttl_s: Seconds = Field(
        default=_DAY_S, description="How long a session lasts, unless the request that opens it gives a time."
    )
    visit_s: Seconds = Field(
        default=_DAY_S / 3, description="How long a browser stays signed in to the service's pages."
    )


class MemorySettings(SettingsSection):
    """Limits of memory."""

    index_bytes: Count = Field(
        default=1024 * 1024 * 1024,
        description="Most bytes of all indexes together; the least recently used index is removed first.",
    )


class QuotaSettings(SettingsSection):
    """The most that one tenant may have."""

    catalogs: Count = Field(default=100, description="Catalogs.")
    toolsets: Count = Field(default=200, description="Toolsets.")
    tools: Count = Field(default=100_000, description="Tools in all catalogs together.")
    sources: Count = Field(default=200, description="Sources that catalogs import from.")
    sessions: Count = Field(default=10_000, description="Concurrent sessions.")
    keys: Count = Field(default=200, description="Keys that are not revoked.")


class RateSettings(SettingsSection):
    """These limits apply to one API key, per minute, over all replicas together.

    Replicas exchange their counts every second. Meanwhile, each further replica may let through at most the limit once
    more. The excess is subtracted in the minutes after it.
    """

    requests: Count = Field(default=6_000, description="Requests in a minute.")
    calls: Count = Field(default=1_200, description="Tool calls in a minute.")
    tokens: Count = Field(default=5_000_000, description="Tokens of definitions and answers in a minute.")
    tools: Mapping[LimitName, ToolRate] = {}


class RetentionSettings(SettingsSection):
    """How long records are kept."""

    receipts_s: Seconds = Field(default=30 * _DAY_S, description="Receipts of calls.")
    figures_s: Seconds = Field(default=400 * _DAY_S, description="Figures of use and savings.")
    misses_s: Seconds = Field(default=90 * _DAY_S, description="Searches without a good result.")
    audit_s: Seconds = Field(default=400 * _DAY_S, description="Records of the audit.")


class ServiceJwtSettings(IssuerSettings):
    """Callers with a JWT from an identity provider (OIDC). The JWT names the caller's tenant and scopes.

    Without any of these settings no JWT is accepted; with one, issuer and audience are needed. A claim within an object
    is named with dots, such as realm_access.roles.
    """

    tenant_claim: str = Field(default="tenant", min_length=1, description="The claim that names the tenant.")
    scopes_claim: str = Field(default="scope", min_length=1, description="The claim that lists the scopes.")
    scope_prefix: str = Field(
        default="", description="The prefix of this service's scopes in a JWT, such as `toolsearch:`."
    )


class OutboundSettings(SettingsSection):
    """For tenants, the service connects only to addresses on the internet, and to the hosts and networks below."""

    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Hosts to which the service may connect at any address, such as jira.corp.example."
    )
    allowed_networks: tuple[str, ...] = Field(
        default=(), description="Networks to which the service may connect, such as 10.20.0.0/16."
    )


class ImportSettings(SettingsSection):
    """How documents are imported."""

    timeout_s: Seconds = Field(default=600.0, description="Time limit for one running import.")
    at_once: Count = Field(
        default=2,
        description="Imports that a replica runs at once for one tenant, and imports of all tenants that use the CPU "
        "at once. Others wait.",
    )


class ActivitySettings(SettingsSection):
    """Which activity is recorded."""

    keep_queries: bool = Field(
        default=True, description="Keep the queries of searches without a good result, but remove possible credentials."
    )


class ReplicaSettings(SettingsSection):
    """Several replicas of the service share one PostgreSQL database."""

    max_connections: Count = Field(
        default=10, description="PostgreSQL connections of one replica, besides the one that listens for changes."
    )


class ServiceSettings(Settings):
    """Everything that the operator of a service may change."""

    serve: ServeSettings = ServeSettings()
    memory: MemorySettings = MemorySettings()
    quotas: QuotaSettings = QuotaSettings()
    rates: RateSettings = RateSettings()
    retention: RetentionSettings = RetentionSettings()
    jwt: ServiceJwtSettings | None = None
    outbound: OutboundSettings = OutboundSettings()
    imports: ImportSettings = ImportSettings()
    mcp_servers: ServerSettings = ServerSettings()
    trust: TrustSettings = TrustSettings()
    activity: ActivitySettings = ActivitySettings()
    replicas: ReplicaSettings = ReplicaSettings()
