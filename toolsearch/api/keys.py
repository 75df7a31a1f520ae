"""The bodies about keys, tenants, and about who asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import Field

from toolsearch.access.scopes import AGENT_SCOPES, Scope
from toolsearch.api.base import AnswerBody, RequestBody, Rules
from toolsearch.api.catalogs import Name

_MAX_S = 10 * 365 * 86_400.0
_MAX_OVERLAP_S = 30 * 86_400.0
Label: TypeAlias = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class NewKey(RequestBody):
    """A key for an agent or a person. It never may do more than the key that it is made with."""

    name: Label = Field(description="A note for people, such as the user of the key.")
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=10)] = Field(
        default=list(AGENT_SCOPES), description="Allowed uses. 'admin' allows everything in its tenant."
    )
    allow: Rules | None = Field(
        default=None, description="A tool has to fit one of these rules. Default: the rules of your own key."
    )
    deny: Rules = Field(default=(), description="And none of these.")
    expires_in_s: Annotated[float, Field(gt=0, le=_MAX_S)] | None = Field(
        default=None, description="Seconds until it expires; null: never."
    )


class NewTenantKey(NewKey):
    """A key of any tenant, which operators make."""

    operator: bool = Field(default=False, description="May look after the whole service.")


class Rotation(RequestBody):
    overlap_s: Annotated[float, Field(ge=0, le=_MAX_OVERLAP_S)] = Field(
        default=0.0, description="Seconds for which the old key is still accepted."
    )


class _Permissions(AnswerBody):
    scopes: list[str]
    allow: list[str]
    deny: list[str]
    operator: bool


class KeyBody(_Permissions):
    """A key, without the key itself, of which only a hash is kept."""

    id: str
    name: str
    prefix: str = Field(description="The first characters of the key.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = Field(description="The time from which it is refused; may be in the future.")
    used_at: datetime | None = Field(description="The last use, give or take a minute.")


class KeyMade(KeyBody):
    key: str = Field(description="Shown this once. Send it as 'Authorization: Bearer ...'.")


class Me(_Permissions):
    """Who asks, and what the credential allows."""

    tenant: str
    key_id: str


class NewTenant(RequestBody):
    """A team or customer, who sees nothing of others."""

    name: Name
    description: str = Field(default="", max_length=1_000)


class TenantBody(AnswerBody):
    name: str
    description: str
