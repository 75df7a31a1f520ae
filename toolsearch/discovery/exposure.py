"""How tools are shown to a model, for library, chat and gateway.

An `Exposure` is one way of showing tools. Each face chooses one by its client, model or user. `ExposurePolicy` decides
for all faces whether a small catalog is shown whole instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolsearch.discovery.pass_through import PassThrough
from toolsearch.discovery.view import View
from toolsearch.wire.capabilities import RevealMode

ExposureKind: TypeAlias = Literal["whole", "append", "fixed", "deferred", "messages"]


@dataclass(frozen=True, slots=True)
class Exposure:
    """One way of showing tools.

    grows      whether found tools are added to the tool list that the model is sent
    answers    content of the answer to a search: names, if the model's list holds the definitions, else the definitions
    is_native  whether the provider replaces the part of an answer about loaded tools by definitions, so that the rest
               has to be a text of its own
    """

    kind: ExposureKind
    grows: bool = False
    answers: Literal["names", "definitions"] = "names"
    is_native: bool = False

    @property
    def is_searched(self) -> bool:
        """Whether the model's list holds the search tool."""
        return self.kind != "whole"

    def listed(self, in_reach: Iterable[str], *, pins: Iterable[str] = (), discovered: Iterable[str] = ()) -> list[str]:
        """The names of the tools in the model's list, in its order. The search tool comes before them and is not
        named.
        """
        if not self.is_searched:
            return list(in_reach)
        return list(dict.fromkeys([*pins, *(discovered if self.grows else ())]))


WHOLE = Exposure("whole")
"""Every tool in reach is listed, so that no search is needed."""

APPEND = Exposure("append", grows=True)
"""Found tools are appended to the list: for the library, and for MCP clients that list again when told to."""

FIXED = Exposure("fixed", answers="definitions")
"""The list never changes. Answers hold definitions, and call tools run the found tools."""

DEFERRED = Exposure("deferred", is_native=True)
"""The provider knows all definitions from the start, and an answer makes it load the found ones."""

MESSAGES = Exposure("messages")
"""The list never changes. A message after the answer adds the found tools."""

SESSION_EXPOSURES: Mapping[RevealMode, Exposure] = {
    "messages": MESSAGES, "deferred": DEFERRED, "fixed": FIXED, "append": APPEND,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExposurePolicy:
    """How the tools of a view are shown.

    pass_through  the catalogs that are shown whole
    searched      how all others are shown
    """

    pass_through: PassThrough
    searched: Exposure

    def exposure(self, view: View) -> Exposure:
        """The exposure of *view*. It stays the same for one version of the catalog; `PassThrough` says when it
        changes.
        """
        return WHOLE if view.is_shown_whole(self.pass_through) else self.searched
