"""How a model is asked for an answer of a type: as its provider has it, or in words."""

from __future__ import annotations

import json
from dataclasses import replace

from toolsearch.chat.model import ChatModel, Prompt
from toolsearch.chat.tool_search_prompt import with_suffix

_INSTRUCTION = (
    "Your final answer has to be JSON alone, without any other text and without a code fence, and it has to fit this "
    "JSON Schema:"
)


def prompt_for(model: ChatModel, prompt: Prompt) -> Prompt:
    """Return *prompt* with its response format in words, unless *model* can be given it as it is."""
    wanted = prompt.options.response_format
    if wanted is None or (wanted.strict_schema is not None and has_native_response_format(model)):
        return prompt
    schema = json.dumps(wanted.schema, ensure_ascii=False)
    return Prompt(
        with_suffix(prompt.messages, f"{_INSTRUCTION}\n{schema}"), replace(prompt.options, response_format=None)
    )


def has_native_response_format(model: ChatModel) -> bool:
    """Whether the provider of *model* holds answers to a schema."""
    return getattr(model, "native_response_format", False) is True
