"""Anticipation: tools that the user's words surely ask for are shown before the model is asked, so that it need not
search for them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from toolsearch.discovery.deprecation import successors_first
from toolsearch.discovery.search_tool import MAX_QUERY_CHARACTERS
from toolsearch.discovery.shown import is_weak
from toolsearch.errors import ToolSearchError
from toolsearch.sessions.answering import Searching
from toolsearch.sessions.tool_lists import ListingConversation, new_that_fit
from toolsearch.tools.definition import TOOLS, ToolReference
from toolsearch.wire.capabilities import RevealMode
from toolsearch_indexes.queries import Words, read_form, sentences

ANTICIPATING: Final[tuple[RevealMode, ...]] = ("messages", "append")
"""The modes in which a tool that was shown beforehand pays; see `anticipated_in`."""

logger = logging.getLogger(__name__)

# A lower threshold saves more money, but where users speak less plainly, most of what it shows is not needed:
# `benchmarks.anticipation` draws the curve.
LEAST_CHANCE: Final = 0.55


class Anticipating(Searching, ListingConversation, Protocol):
    """The parts of a conversation that anticipation needs."""


def anticipated_in(conversation: Anticipating, said: str, mode: RevealMode) -> list[str]:
    """The names of the tools that *said*, the user's words, surely asks for, and that pay if the model is shown them in
    *mode* before it is asked.

    A message can add them at any time. Otherwise they make the first list another one than that of all conversations,
    whose beginning may be cached. That pays in "append", where a search costs the cache as well, if it is likely that
    the model need not search: that is, if *said* asks for one thing.

    A tool that does not fit into the budget beside the present ones is left out, so that no tool has to go for it.
    """
    sent, parts = conversation.state.sent.now, sentences(said)
    pays = mode == "messages" or (mode == "append" and sent.endpoint is None and not parts)
    if not pays or not conversation.exposure.is_searched:
        return []
    names = dict.fromkeys(_asked_for(conversation, part) for part in parts or [said])
    tools = [tool.definition for name in names if (tool := conversation.shown_tool(name)) is not None]
    return [definition.name for definition in new_that_fit(conversation, tools)]


def _asked_for(conversation: Anticipating, part: str) -> str:
    """The name of the tool that *part* of the user's words surely asks for; "" for none.

    Searches that fail are logged only, because the turn goes on without them.
    """
    from toolsearch_indexes.confidence import RIVALS  # loads numpy, which many imports of an engine do not need

    query, host = part[:MAX_QUERY_CHARACTERS], conversation.host
    try:
        if host.strategies[0] == "regex" or not isinstance(read_form(query), Words):
            return ""
        found = host.search(
            query,
            limit=RIVALS,
            strategy=None,
            reach=conversation.reach,
            server=None,
            principal=conversation.principal,
            kinds=TOOLS,
        )
    except ToolSearchError as error:
        logger.debug("session %s: nothing is anticipated: %s", conversation.state.id, error)
        return ""
    except Exception:  # an index of the application's own may raise anything
        logger.exception("session %s: nothing is anticipated", conversation.state.id)
        return ""
    if is_weak(found) or chance_of_best(found) < LEAST_CHANCE:
        return ""
    return successors_first(found, conversation.view.find)[0].name


def chance_of_best(found: Sequence[ToolReference]) -> float:
    """The chance that the best of *found* is the tool meant; see `chances_of`."""
    from toolsearch_indexes.confidence import chances_of

    return chances_of([each.score for each in found])[0]
