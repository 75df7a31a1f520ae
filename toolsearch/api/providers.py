"""The bodies about the providers of model APIs, whom the service asks for its callers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody

ModelApi: TypeAlias = Literal["anthropic", "openai"]
BASE_URLS: Final[dict[ModelApi, str]] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}


class NewProvider(RequestBody):
    """Who answers the tenant's requests to models, and the key that is sent there in place of the caller's."""

    api: ModelApi = Field(description="'anthropic' is Messages; 'openai' is Responses and Chat Completions.")
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s?#]+$", max_length=4_000)] | None = Field(
        default=None, description="The part of its address before /v1; null: the company's own address."
    )
    key: Annotated[str, Field(pattern=r"^[!-~]+$", max_length=16_384)] = Field(
        description="Sent to the provider and nowhere else. Never shown again."
    )


class ProviderBody(AnswerBody):
    """A provider, without its key."""

    api: str
    base_url: str
    changed_at: datetime
