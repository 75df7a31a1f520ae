"""The bodies about tenants."""

from __future__ import annotations

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody
from toolsearch.api.catalogs import Name


class NewTenant(RequestBody):
    """A team or customer, who sees nothing of others."""

    name: Name
    description: str = Field(default="", max_length=1_000)


class TenantBody(AnswerBody):
    name: str
    description: str
