"""The verdicts of trust: whether a definition may be shown and, if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from toolsearch.scanning.findings import Finding
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.pinned import Entry, Kind


class ReviewReason(Enum):
    """Why an entry needs review."""

    NEW = "new"  # never seen before, and the settings want a person to look at it
    CHANGED = "changed"  # not what was approved
    SUSPICIOUS = "suspicious"  # the scan has found something
    WITHDRAWN = "withdrawn"  # a person has taken an approval back
    UNREADABLE = "approvals cannot be read"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry that somebody should look at, and why.

    While it is held, a tool can be neither searched, suggested, counted nor called, and clients learn nothing of a
    prompt, a resource or a server's instructions. *pin* belongs to the definition that was looked at: an approval names
    it, so that another definition is held again.
    """

    name: str
    server: str
    pin: str
    why: ReviewReason
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()  # the places that differ from what was approved, for people
    kind: Kind = Kind.TOOL

    @property
    def is_only_new(self) -> bool:
        """Whether nothing speaks against it but that nobody has looked at it yet."""
        return self.why is ReviewReason.NEW and not self.findings

    @property
    def label(self) -> str:
        """The name that people are shown: the name alone for a tool, with the kind in front for other entries."""
        return self.name if self.kind is Kind.TOOL else f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """*admitted* keeps the given order. *held* awaits approval. *warnings* are about entries that were admitted
    nevertheless.
    """

    admitted: tuple[Entry, ...]
    held: tuple[ReviewItem, ...] = ()
    warnings: tuple[ReviewItem, ...] = ()


class ToolGate(Protocol):
    """Judges listings. Deterministic and offline: the same tools, pins and settings give the same verdict."""

    def version(self) -> int:
        """A number that changes when judging again may give another verdict: after an approval or a withdrawal, or when
        the approvals cannot be read any more.
        """
        ...

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:
        """Judge everything that *server* lists now. *others* are the tools of other servers, whose names it may
        imitate.
        """
        ...

    def know(self, server: McpServer) -> None:
        """Judge the listings of *server* from now on; what another server of its name was approved does not count."""
        ...

    def close(self) -> None:
        """Close what it keeps approvals in."""
        ...


class OpenGate:
    """Admits everything: the trust settings all say ``allow``."""

    def version(self) -> int:
        return 0

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:  # noqa: ARG002
        return Verdict(tuple(entries))

    def know(self, server: McpServer) -> None:
        """There is nothing to know."""

    def close(self) -> None:
        """There is nothing to close."""
