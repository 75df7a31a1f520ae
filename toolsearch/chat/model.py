"""The interface to a chat model: prompts, options, and closing its stream.

An answer of a type is JSON that fits a schema. A model is asked for it in the provider's own way. If the provider has
none, it is asked in words.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NoReturn, Protocol, TypeVar, cast, overload

from toolsearch.calling.validation import faults_of, without_absent
from toolsearch.errors import BadAnswerError, BadArgumentsError, BadToolError
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_schema import JsonType, require_schema
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import namespaced
from toolsearch.tools.providers import as_tools
from toolsearch.tools.strict import strict_schema
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import Message, SystemMessage

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ResponseFormat(Generic[Answer]):
    """The type that an answer must have. Made by `of`.

    name           its name for providers
    strict_schema  *schema* in the form that providers enforce; None if it has no such form
    """

    name: str
    schema: JsonObject
    strict_schema: JsonObject | None
    _parse: Callable[[JsonObject], Answer]

    @overload
    @classmethod
    def of(cls, kind: type[Answer]) -> ResponseFormat[Answer]: ...

    @overload
    @classmethod
    def of(cls, kind: JsonObject) -> ResponseFormat[JsonObject]: ...

    @classmethod
    def of(cls, kind: Any) -> ResponseFormat[Any]:
        """Return the format for *kind*: a pydantic model, dataclass or TypedDict, or a JSON Schema, which gives dicts.

        Raises BadToolError if JSON cannot represent the type, or if its values are not JSON objects.
        """
        if isinstance(kind, Mapping):
            schema = require_schema(cast("JsonObject", kind), "the schema of an answer")
            return ResponseFormat(_legal(schema.get("title")), schema, _strict(schema), dict)
        of_kind = JsonType(kind, role="type of an answer")
        if of_kind.schema.get("type") != "object":
            raise BadToolError(f"the answer's type {of_kind.name} is not a JSON object; make it a field of a dataclass")
        schema = of_kind.schema
        return ResponseFormat(
            _legal(of_kind.name), schema, _strict(schema), lambda value: of_kind.parse(value, whole="answer")
        )

    def read(self, response: ChatResponse) -> Answer:
        """Return *response* as a value of the type. Raises BadAnswerError if it does not fit."""
        try:
            value = without_absent(self.schema, _object_in(response.text))
            faults = faults_of(self.schema, value, whole="answer")
            if not faults:
                return self._parse(value)
        except (BadArgumentsError, BadToolError) as error:
            faults = str(error)
        ended = "" if response.finish_reason == "stop" else f" (it ended with {response.finish_reason!r})"
        raise BadAnswerError(f"the answer is no {self.name}{ended}: {faults}", response)


def _legal(name: object) -> str:
    return namespaced("", name) if isinstance(name, str) else "answer"


def _strict(schema: JsonObject) -> JsonObject | None:
    try:
        return strict_schema(schema)
    except BadToolError:
        return None


def _object_in(text: str) -> JsonObject:
    """Return the JSON object that *text* is. Raises BadArgumentsError without quoting it."""
    try:
        value: object = json.loads(_without_fence(text), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadArgumentsError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise BadArgumentsError("it holds a number that JSON does not have, or is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadArgumentsError("it is JSON, but not an object")
    return cast("JsonObject", value)


def _without_fence(text: str) -> str:
    """Return *text* without the Markdown fence that models put around JSON."""
    lines = text.strip().splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if is_fenced else text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The options of an answer. None leaves a choice to the model's own default.

    tools           tools that the model may call now, in the order of its list
    deferred_tools  tools that a native tool search may load; only for models with `native_tool_search`
    tool_choice     "auto", "none", "required", or the name of a tool
    tool_context    the values in the tools' `ToolContext`; no model sees them
    extra           further arguments for the provider's SDK, as it names them
    response_format the type of the answer, made by `ResponseFormat.of`; its `read` makes a value of the answer
    """

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    deferred_tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    tool_context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    response_format: ResponseFormat[Any] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: tuple[Message, ...]
    options: ChatOptions = ChatOptions()


class ChatModel(Protocol):
    """A model of some provider. Safe to share between tasks. Raises ChatModelError if the provider refuses a request.

    If the provider enforces schemas, the model has an attribute ``native_response_format = True``, and sends
    `ChatOptions.response_format` to the provider. For other models the client describes the schema in words.

    A model may have options for every client in an attribute `default_options`. Options of a client and a request
    replace them; tools and contexts are merged. They are not added to a prompt that you make yourself.
    """

    @property
    def provider(self) -> str:
        """openai, openai-responses or anthropic. Contents that only this provider understands are marked with it."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """The destination of requests that name no other model. `capabilities_of` gives its capabilities."""
        ...

    @property
    def native_tool_search(self) -> bool:
        """Whether this model can load tools in the midst of a conversation and keep its prompt cache."""
        ...

    async def call(self, prompt: Prompt) -> ChatResponse: ...

    def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        """The same answer in pieces. Leaving the iterator early ends the request."""
        ...


def merged(defaults: ChatOptions, request: ChatOptions) -> ChatOptions:
    """Return *request* with missing options from *defaults*; neither is changed.

    Tools of both are offered, the defaults' first; contexts and extra arguments are merged, and *request* wins. Raises
    DuplicateToolError if two tools have one name.
    """
    return replace(
        request,
        model=defaults.model if request.model is None else request.model,
        temperature=defaults.temperature if request.temperature is None else request.temperature,
        max_tokens=defaults.max_tokens if request.max_tokens is None else request.max_tokens,
        tools=_union(defaults.tools, request.tools),
        deferred_tools=_union(defaults.deferred_tools, request.deferred_tools),
        tool_choice=defaults.tool_choice if request.tool_choice is None else request.tool_choice,
        tool_context={**defaults.tool_context, **request.tool_context},
        response_format=defaults.response_format if request.response_format is None else request.response_format,
        extra={**defaults.extra, **request.extra},
    )


def default_options_of(model: ChatModel) -> ChatOptions:
    """The options that *model* has for every client, if it has any."""
    options: object = getattr(model, "default_options", None)
    return options if isinstance(options, ChatOptions) else ChatOptions()


def _union(first: Iterable[Tool], second: Iterable[Tool]) -> tuple[Tool, ...]:
    return tuple(as_tools(*first, *second))


def with_suffix(messages: tuple[Message, ...], suffix: str) -> tuple[Message, ...]:
    """Append *suffix* to the system message in front, unless it ends so, or put one in front.

    A system message that comes later is left alone: it was sent as it is.
    """
    if not messages or not isinstance(messages[0], SystemMessage):
        return (SystemMessage(suffix), *messages)
    text = messages[0].text
    return messages if text.endswith(suffix) else (SystemMessage(f"{text}\n\n{suffix}".lstrip()), *messages[1:])


_INSTRUCTION = (
    "Your final answer must be JSON alone, without other text and without a code fence. It must fit this JSON Schema:"
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
    """Whether the provider of *model* enforces a schema for answers."""
    return getattr(model, "native_response_format", False) is True


@asynccontextmanager
async def closing(chunks: AsyncIterator[ChatChunk]) -> AsyncGenerator[AsyncIterator[ChatChunk]]:
    """Close *chunks* on the way out, so that leaving a stream early ends the request behind it at once."""
    try:
        yield chunks
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
