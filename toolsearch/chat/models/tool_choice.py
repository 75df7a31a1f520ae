"""A tool choice, as far as a model takes it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolsearch.chat.model import Prompt
from toolsearch.wire.capabilities import Capabilities
from toolsearch.wire.messages import Message, ToolChangeMessage

logger = logging.getLogger(__name__)

_FREE = (None, "auto", "none")
_ANY = "required"


def with_possible_choice(prompt: Prompt, known: Capabilities, model: str) -> tuple[Prompt, Mapping[str, str]]:
    """Return *prompt* with the tool choice "auto" where *model* does not take its own, and what the answer's metadata
    says of that; the log says it as well.

    Not taken is, by some models, a choice that forces a call, or one that names a tool that only a message has added.
    Where thinking is bound to the list, a tool that is not in it was told of in a message, too.
    """
    options = prompt.options
    choice = options.tool_choice
    if not options.tools or choice in _FREE or _is_taken(prompt, known):
        return prompt, {}
    logger.warning("%s does not take the tool choice %r: 'auto' was sent", model, choice)
    return replace(prompt, options=replace(options, tool_choice="auto")), {"choice_sent": "auto"}


def _is_taken(prompt: Prompt, known: Capabilities) -> bool:
    name = prompt.options.tool_choice
    if not known.forced_choice or name == _ANY or any(tool.name == name for tool in prompt.options.tools):
        return known.forced_choice
    return known.choice_of_added if _is_added(name, prompt.messages) else not known.binds_thinking


def _is_added(name: str | None, messages: Sequence[Message]) -> bool:
    changes = (message for message in messages if isinstance(message, ToolChangeMessage))
    return any(definition.name == name for change in changes for definition in change.added)
