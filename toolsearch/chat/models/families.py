"""Which models can load tools in the midst of a conversation, or be held to a schema, told by their names."""

from __future__ import annotations

_CLAUDE_SINCE = (4, 5)
_GPT_SINCE = (5, 4)


def claude_searches_natively(model: str) -> bool:
    """Every family from 4.5 on, under any cloud's name: ``eu.anthropic.claude-opus-4-5-20251101-v1:0``."""
    return _is_recent_claude(model)


def claude_takes_schemas(model: str) -> bool:
    """The same ones. Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs"""
    return _is_recent_claude(model)


def _is_recent_claude(model: str) -> bool:
    _, claude, rest = model.lower().replace("@", "-").partition("claude-")
    family, *version = rest.split("-")
    return bool(claude) and family.isalpha() and _version(version) >= _CLAUDE_SINCE


def openai_searches_natively(model: str) -> bool:
    """GPT from 5.4 on, but for the smallest ones: ``gpt-5.4-mini`` does, ``gpt-5.4-nano`` does not."""
    words = model.lower().rpartition("/")[2].split("-")
    if len(words) < 2 or words[0] != "gpt" or "nano" in words:
        return False
    return _version(words[1].split(".")) >= _GPT_SINCE


def _version(words: list[str]) -> tuple[int, int]:
    """Major and minor version; anything but a number of at most two digits, such as a date, counts as 0."""
    numbers = [int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else 0 for word in words]
    major, minor, *_ = [*numbers, 0, 0]
    return major, minor
