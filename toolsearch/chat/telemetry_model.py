"""Records each call of a model as a span: the request, the tokens, and how it ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from toolsearch.chat.model import (
    ChatModel,
    ChatOptions,
    Prompt,
    closing,
    default_options_of,
    has_native_response_format,
)
from toolsearch.telemetry import ChatSpan, Telemetry
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason, Usage
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)

_PROVIDERS = {"openai-responses": "openai"}  # the conventions have one name for all APIs of a provider


class TelemetryModel:
    """Does the same as *model*, and reports to *telemetry*.

    *name* is the model's name for prompts without one; by default the model's own attribute `model`.
    """

    def __init__(self, model: ChatModel, telemetry: Telemetry, *, name: str = "") -> None:
        self._model = model
        self._telemetry = telemetry
        self._name = name or str(getattr(model, "model", "")) or "unknown"

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def endpoint(self) -> Endpoint:
        return self._model.endpoint

    @property
    def native_tool_search(self) -> bool:
        return self._model.native_tool_search

    @property
    def default_options(self) -> ChatOptions:
        return default_options_of(self._model)

    @property
    def native_response_format(self) -> bool:
        return has_native_response_format(self._model)

    async def call(self, prompt: Prompt) -> ChatResponse:
        with self._span(prompt, is_current=True) as span:
            _tell_asked(span, prompt)
            response = await self._model.call(prompt)
            _tell_answered(span, response.message, response.usage, response.finish_reason)
            return response

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        usage, finish_reason, message = Usage(), None, AssistantMessage()
        with self._span(prompt, is_current=False) as span:
            _tell_asked(span, prompt)
            async with closing(self._model.stream(prompt)) as chunks:
                async for chunk in chunks:
                    usage = chunk.usage or usage
                    finish_reason = chunk.finish_reason or finish_reason
                    message = chunk.message or message
                    yield chunk
            _tell_answered(span, message, usage, finish_reason)

    def _span(self, prompt: Prompt, *, is_current: bool) -> ChatSpan:
        return self._telemetry.chat(
            provider=_PROVIDERS.get(self.provider, self.provider),
            model=prompt.options.model or self._name,
            is_current=is_current,
        )


def _tell_asked(span: ChatSpan, prompt: Prompt) -> None:
    span.asked(
        {"temperature": prompt.options.temperature, "max_tokens": prompt.options.max_tokens},
        messages=lambda: list(map(_written, prompt.messages)),
        tools=lambda: [_defined(tool.definition) for tool in prompt.options.tools],
    )


def _defined(definition: ToolDefinition) -> Mapping[str, Any]:
    """*definition* as the conventions write it."""
    return {
        "type": "function",
        "name": definition.name,
        "description": definition.description,
        "parameters": definition.input_schema,
    }


def _tell_answered(span: ChatSpan, message: AssistantMessage, usage: Usage, finish_reason: FinishReason | None) -> None:
    span.answered(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        finish_reason=finish_reason,
        messages=lambda: [{**_written(message), "finish_reason": finish_reason}],
    )


def _written(message: Message) -> Mapping[str, Any]:
    """*message* in the form of the conventions. Contents other than text are only named."""
    match message:
        case SystemMessage(text):
            return {"role": "system", "parts": [_text(text)]}
        case UserMessage(text, content):
            return {"role": "user", "parts": [_text(text), *({"type": str(block.get("type"))} for block in content)]}
        case AssistantMessage(text, calls):
            asked = [
                {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in calls
            ]
            return {"role": "assistant", "parts": [*([_text(text)] if text else []), *asked]}
        case ToolMessage(results):
            given = [
                {"type": "tool_call_response", "id": result.call_id, "response": result.text} for result in results
            ]
            return {"role": "tool", "parts": given}
        case ToolChangeMessage(added, removed):
            names = [definition.name for definition in added]
            return {"role": "system", "parts": [{"type": "tool_change", "added": names, "removed": list(removed)}]}


def _text(text: str) -> Mapping[str, str]:
    return {"type": "text", "content": text}
