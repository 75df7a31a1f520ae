"""What the examples share: a model, real where there is a key, else following a script; and how an answer is shown."""

from __future__ import annotations

import os

from toolsearch.chat import AnthropicModel, ChatModel, ChatResponse, OpenAIResponsesModel, ScriptedModel, ToolMessage


def model_or(*script: str | ChatResponse) -> ChatModel:
    """Return OpenAI's model with OPENAI_API_KEY, Anthropic's with ANTHROPIC_API_KEY, else one that says *script*."""
    if os.environ.get("OPENAI_API_KEY"):
        return OpenAIResponsesModel(os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    if os.environ.get("ANTHROPIC_API_KEY"):
        return AnthropicModel(os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-6"), cache_prompt=True)
    return ScriptedModel(*script)


def show(response: ChatResponse) -> None:
    """Print what each tool answered, and then the model."""
    for step in response.steps:
        for result in step.results if isinstance(step, ToolMessage) else ():
            print(f"{result.name} -> {result.text}")
    print(response.text)
