"""The bodies about the audit."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from toolsearch.api.base import AnswerBody


class AuditEntry(AnswerBody):
    """Who did what to what, and with which outcome."""

    at: datetime
    key_id: str
    action: str
    subject: str
    outcome: str = Field(description="'done', or why not.")
