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
    """How the service is reached. The address that it is bound to is an option of the command."""

    public_url: str | None = Field(
        default=None, description="Where clients reach the service, as https://HOST; none: at the bound address."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Hosts that requests may name beside the bound address, as HOST or HOST:PORT."
    )
    max_body_bytes: Count = Field(default=16 * 1024 * 1024, description="Bytes of one request.")
    request_timeout_s: Seconds = Field(default=60.0, description="How long a request may take, except imports.")
    shutdown_timeout_s: Count = Field(
        default=30, description="Whole seconds that running requests get when the service is told to end."
    )
    local_metrics: bool = Field(
        default=False, description="Show /metrics to programs on this machine without an operator's key."
    )
    session_ttl_s: Seconds = Field(default=_DAY_S, description="How long a session lasts if its request does not say.")
    visit_s: Seconds = Field(default=_DAY_S / 3, description="How long a browser stays signed in to the pages.")


class MemorySettings(SettingsSection):
    """Limits of memory."""

    index_bytes: Count = Field(
        default=1024 * 1024 * 1024, description="Bytes of all indexes; the least recently used one leaves first."
    )


class QuotaSettings(SettingsSection):
    """Quotas of one tenant."""

    catalogs: Count = Field(default=100, description="Catalogs.")
    toolsets: Count = Field(default=200, description="Toolsets.")
    tools: Count = Field(default=100_000, description="Tools of all catalogs.")
    sources: Count = Field(default=200, description="Sources that catalogs import from.")
    sessions: Count = Field(default=10_000, description="Sessions at a time.")
    keys: Count = Field(default=200, description="Keys that are not revoked.")


class RateSettings(SettingsSection):
    """The limits of one key in a minute, for all replicas together.

    Replicas exchange their counts every second. Meanwhile, each further replica may let through at most the limit once
    more. The excess is subtracted in the minutes after it.
    """

    requests: Count = Field(default=6_000, description="Requests in a minute.")
    calls: Count = Field(default=1_200, description="Tool calls in a minute.")
    tokens: Count = Field(default=5_000_000, description="Tokens of definitions and answers in a minute.")
    tools: Mapping[LimitName, ToolRate] = {}


class RetentionSettings(SettingsSection):
    """How long growing data are kept."""

    receipts_s: Seconds = Field(default=30 * _DAY_S, description="Receipts of calls.")
    figures_s: Seconds = Field(default=400 * _DAY_S, description="Figures of use and savings.")
    misses_s: Seconds = Field(default=90 * _DAY_S, description="Requests without a good answer.")
    audit_s: Seconds = Field(default=400 * _DAY_S, description="The audit.")


class ServiceJwtSettings(IssuerSettings):
    """Callers from an identity provider (OIDC): their JWTs name their tenant and their scopes.

    Without any of these settings no JWT is accepted; with one, issuer and audience are needed. A claim within an object
    is named with dots, such as realm_access.roles.
    """

    tenant_claim: str = Field(default="tenant", min_length=1, description="The claim with the name of the tenant.")
    scopes_claim: str = Field(default="scope", min_length=1, description="The claim with the scopes.")
    scope_prefix: str = Field(default="", description="How scopes of this service begin there, such as toolsearch:.")


class OutboundSettings(SettingsSection):
    """The addresses that the service may connect to for tenants, besides those on the internet. Others are refused."""

    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Names of hosts that may be reached wherever they are, such as jira.corp.example."
    )
    allowed_networks: tuple[str, ...] = Field(
        default=(), description="Networks that may be reached, such as 10.20.0.0/16."
    )


class ImportSettings(SettingsSection):
    """How documents are imported."""

    timeout_s: Seconds = Field(default=600.0, description="How long one import may take, however its server answers.")
    at_once: Count = Field(
        default=2,
        description="Imports of one tenant that a replica runs at once, and imports of all tenants that it reads and "
        "writes at once. The others wait.",
    )


class ActivitySettings(SettingsSection):
    """The kept records of activity."""

    keep_queries: bool = Field(
        default=True, description="Keep the words of searches that nothing fits well, without what may be a credential."
    )


class ReplicaSettings(SettingsSection):
    """Several replicas of the service over one PostgreSQL database."""

    max_connections: Count = Field(
        default=10, description="Connections of one replica to PostgreSQL, beside the one by which it hears of changes."
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
