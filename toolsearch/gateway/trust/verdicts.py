"""What the gateway asks of trust: may these definitions be shown, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from toolsearch.upstreams.pinned import Entry, Kind


class ReviewReason(Enum):
    """Why an entry waits for a person."""

    NEW = "new"  # never seen before, and the settings want a person to look at it
    CHANGED = "changed"  # not what was approved
    SUSPICIOUS = "suspicious"  # the scan has found something
    WITHDRAWN = "withdrawn"  # a person has taken an approval back
    UNREADABLE = "approvals cannot be read"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the scan has against a definition.

    rule      a stable name, such as ``hidden-characters``
    place     where in the entry: ``description``, ``inputSchema.properties.path.description``
    evidence  the words, short and printable; nothing that could steer a terminal or a model
    """

    rule: str
    place: str
    evidence: str


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A tool that is neither searched, suggested, counted nor called until it is approved; or a prompt, a resource or a
    server's instructions, of which clients learn nothing until then.

    pin  of the definition that was held, which is what an approval names: another one is held anew
    """

    name: str
    server: str
    pin: str
    why: ReviewReason
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()  # the places that differ from what was approved, for people
    kind: Kind = Kind.TOOL

    @property
    def label(self) -> str:
        """What people are told of it: a tool's name alone, others with their kind."""
        return self.name if self.kind is Kind.TOOL else f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """*admitted* in the order given; what was admitted all the same is in *warnings*."""

    admitted: tuple[Entry, ...]
    held: tuple[ReviewItem, ...] = ()
    warnings: tuple[ReviewItem, ...] = ()


class ToolGate(Protocol):
    """Judges listings. Deterministic and offline: the same tools, pins and settings give the same verdict."""

    def version(self) -> int:
        """Another number once judging again may give another verdict: somebody has approved, or withdrawn that, or it
        cannot be told any more.
        """
        ...

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:
        """Judge all that *server* lists now. *others* are the tools of other servers, whose names it may shadow."""
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

    def close(self) -> None:
        """There is nothing to close."""
