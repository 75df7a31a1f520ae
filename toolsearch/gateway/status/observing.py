"""What a gateway tells of each list, search and call as it ends: for receipts and figures that outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.gateway.caller import Caller
from toolsearch.tools.definition import ToolDefinition

CANCELLED: Final = "cancelled"  # the code of a call whose caller has gone before its end


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call has ended.

    name            as it was called, by itself or through a call tool
    definition      of the tool; None if there is none of that name in reach
    was_run         False if it was refused or handed back
    is_handed_back  whoever has listed the tool runs it
    code            of the error; "" if there was none
    """

    name: str
    definition: ToolDefinition | None
    was_run: bool = True
    is_handed_back: bool = False
    code: str = ""
    seconds: float = 0.0


class GatewayObserver(Protocol):
    """All methods are called in the gateway's event loop, and return at once."""

    def listed(self, caller: Caller, *, shown_tokens: int, all_tools_tokens: int) -> None:
        """A list was handed out; with every tool in reach it would have taken *all_tools_tokens*.

        That is 0 for a list that was asked for anew because of a search. Told once every server was heard of: before
        that it is not known.
        """
        ...

    def searched(
        self, caller: Caller, answers: Sequence[AnsweredQuery], *, written_tokens: int, answer_tokens: int
    ) -> None:
        """A search was answered; the model wrote *written_tokens* for it."""
        ...

    def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None]:
        """What is returned never fails. Unless the caller has gone, it gets its result only after that."""
        ...
