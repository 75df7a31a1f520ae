"""What each model takes, by the providers' published lists as of 2026-11-22.

Kept apart from the table of the library on purpose: each is a check of the other. A name that stands on no list, as the
"m" of many tests does, takes what models took before there were such differences, and nothing newer.
"""

import re

MAX_FUNCTIONS = 200  # in the list of one request to OpenAI

_TOOL_CHANGES = (
    "claude-fable-5", "claude-mythos-5", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5",
)  # fmt: skip
_TOOL_REFERENCES = (
    *_TOOL_CHANGES, "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-sonnet-5", "claude-opus-4-5", "claude-opus-4-6",
    "claude-opus-4-7", "claude-haiku-4-5",
)  # fmt: skip
_BINDS_THINKING = (
    "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2", "claude-opus-5-5", "claude-sonnet-5-5",
    "claude-haiku-5-5",
)  # fmt: skip
_UNFORCED = (
    "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2", "claude-opus-5-5",
    "claude-sonnet-5-5",
)  # fmt: skip
_NUMBERED_CLAUDE = re.compile(r"claude-([a-z]+-)?\d")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?=-|$)")
_OF_OPENAI = re.compile(r"(gpt-|o\d)")


def takes_tool_changes(model: str) -> bool:
    """Whether messages may add and withdraw tools, and a system message may stand among the others."""
    return model.startswith(_TOOL_CHANGES)


def takes_tool_references(model: str) -> bool:
    return model.startswith(_TOOL_REFERENCES) or not _NUMBERED_CLAUDE.match(model)


def binds_thinking(model: str) -> bool:
    return model.startswith(_BINDS_THINKING)


def takes_forced_choice(model: str) -> bool:
    return not model.startswith(_UNFORCED)


def takes_additional_tools(model: str) -> bool:
    """Every model of OpenAI's own endpoint; what others serve by the same dialect does not know the item."""
    return _OF_OPENAI.match(model) is not None


def takes_choice_of_additional_tools(model: str) -> bool:
    return _gpt(model) >= (5, 6)


def caches_at_ends_of_messages(model: str) -> bool:
    return _gpt(model) >= (5, 6)


def takes_tool_search(model: str) -> bool:
    return not _OF_OPENAI.match(model) or (_gpt(model) >= (5, 4) and "-nano" not in model)


def takes_functions_on_chat(model: str, effort: object) -> bool:
    """From 5.6 on a model reasons unless it is told not to, and from 5.4 on if it is told to."""
    return effort == "none" or _gpt(model) < ((5, 6) if effort is None else (5, 4))


def _gpt(model: str) -> tuple[int, int]:
    found = _GPT.match(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
