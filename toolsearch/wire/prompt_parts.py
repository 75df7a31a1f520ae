"""A part of a prompt, and where a provider's cache may end: what it keeps of a prompt ends at few places of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from toolsearch.tools.json_types import JsonObject


class PromptPart(NamedTuple):
    """*is_end* says whether what is kept of a prompt may end after this part."""

    value: JsonObject
    is_end: bool


def openai_parts(
    messages: Sequence[JsonObject], *, is_user: Callable[[JsonObject], bool], is_result: Callable[[JsonObject], bool]
) -> Iterator[PromptPart]:
    """From gpt-5.6 on, what is kept ends with what the user says, or with the last of several results in a row.

    Source: developers.openai.com, prompt caching, "Implicit mode".
    """
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        is_last_result = is_result(message) and (following is None or not is_result(following))
        yield PromptPart(message, is_user(message) or is_last_result)
