"""The bodies about the state of the service itself."""

from __future__ import annotations

from pydantic import Field

from toolsearch.api.base import AnswerBody


class Health(AnswerBody):
    status: str = Field(description="`ok`, or why no requests can be served.", examples=["ok"])
