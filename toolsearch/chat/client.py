"""The client: a model with its tools, instructions and advisors. It can be a tool of another model, too.

If an answer does not have the requested type, the model is told the fault, and asked again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import ToolCallbackResolver
from toolsearch.chat.advisor import MEMORY_ORDER, TOOL_LOOP_ORDER, Advisor, Chain, ChatRequest, chain_of
from toolsearch.chat.model import (
    Answer,
    ChatModel,
    ChatOptions,
    Prompt,
    ResponseFormat,
    closing,
    default_options_of,
    merged,
)
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.errors import BadAnswerError, BadSettingError, UnknownToolError
from toolsearch.option_values import name_list
from toolsearch.threads import iterate_sync, run_sync
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import require_legal_name
from toolsearch.tools.providers import as_tools
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason
from toolsearch.wire.messages import Message, SystemMessage, UserMessage

# The model ended these answers itself, so asking again can help.
_ENDED_BY_MODEL: tuple[FinishReason, ...] = ("stop", "length")


@dataclass(frozen=True, slots=True)
class TypedAnswerAdvisor:
    """Asks at most *attempts* times, and returns the last answer, whether it fits or not.

    It stands between memory and the tool loop, so that no memory keeps the answers that did not fit. The usage and the
    steps of all attempts are added up. A stream is passed on as it comes.
    """

    wanted: ResponseFormat[Any]
    attempts: int
    order: int = (MEMORY_ORDER + TOOL_LOOP_ORDER) // 2

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse:
        response = await chain.call(request)
        for _ in range(self.attempts - 1):
            complaint = self._complaint(response)
            if not complaint:
                break
            said = (*response.steps, response.message, UserMessage(complaint))
            request = replace(request, prompt=replace(request.prompt, messages=request.prompt.messages + said))
            again = await chain.call(request)
            response = replace(again, usage=response.usage + again.usage, steps=response.steps + again.steps)
        return response

    def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]:
        return chain.stream(request)

    def _complaint(self, response: ChatResponse) -> str:
        """The text that tells the model the fault of *response*; "" if it fits, or if the model cannot improve it."""
        if response.message.tool_calls or response.finish_reason not in _ENDED_BY_MODEL:
            return ""
        try:
            self.wanted.read(response)
        except BadAnswerError as error:
            return f"Your answer cannot be used: {error}. Answer again, with nothing but the corrected JSON."
        return ""


class ChatClient:
    """Asks *model*. Immutable, and safe to share between tasks. The arguments hold for every request.

    tools         whatever `as_tools` takes: tools, functions, objects with `@tool` methods, providers, lists of these;
                  providers are asked anew for each request
    tool_names    tools by name, which *resolver* looks up for each request
    tool_context  the values in the tools' ToolContext; no model sees them
    system        the system message, unless a request brings its own
    advisors      steps between the client and the model. Unless a `ToolCallingAdvisor` is among them, one is
                  added, even without tools, since an advisor may add some
    manager       runs the tool calls, for the advisor that is added
    execute_tools whether tool calls are run at all; otherwise the caller runs them, and no tool-calling advisor
                  takes part
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        tools: Iterable[object] = (),
        tool_names: Iterable[str] = (),
        resolver: ToolCallbackResolver | None = None,
        tool_context: Mapping[str, Any] | None = None,
        system: str | None = None,
        advisors: Iterable[Advisor] = (),
        options: ChatOptions | None = None,
        manager: ToolCallingManager | None = None,
        execute_tools: bool = True,
    ) -> None:
        self.model = model
        self._resolver = resolver
        self._tool_loop = ToolCallingAdvisor(manager)
        self._defaults = PromptSpec(
            self,
            given_tools=tuple(tools),
            given_tool_names=name_list(tool_names, "tool_names"),
            given_tool_context=dict(tool_context or {}),
            default_system=system,
            given_advisors=tuple(advisors),
            given_options=merged(default_options_of(model), options or ChatOptions()),
            runs_tools=execute_tools,
        )

    def prompt(self, said: str | Message | Sequence[Message] = ()) -> PromptSpec:
        """Begin a request with *said*: a user's text, or the messages of a conversation."""
        if isinstance(said, str):
            return self._defaults.user(said)
        return self._defaults.messages(*(said if isinstance(said, Sequence) else [said]))

    @property
    def model_name(self) -> str:
        """The model that is asked unless a request names another one."""
        return self._defaults.given_options.model or self.model.endpoint.model or self.model.provider

    async def answer(self, said: str, *, system: str, schema: JsonObject, max_tokens: int) -> ChatResponse:
        """Ask for JSON of *schema*, and return the model's answer, even if it does not fit. No tools are called.

        With this method the client is a `RequestWriter`. Raises ChatModelError.
        """
        wanted = ChatOptions(response_format=ResponseFormat[Any].of(schema), max_tokens=max_tokens)
        return await self.prompt(said).system(system).options(wanted).execute_tools(run=False).call()

    def chain(self, advisors: Sequence[Advisor], *, execute_tools: bool) -> Chain:
        """Return the way to the model. Raises BadSettingError for more than one tool-calling advisor."""
        loops = [advisor for advisor in advisors if isinstance(advisor, ToolCallingAdvisor)]
        others = [advisor for advisor in advisors if not isinstance(advisor, ToolCallingAdvisor)]
        if len(loops) > 1:
            names = ", ".join(type(advisor).__name__ for advisor in loops)
            raise BadSettingError(f"a chain has one tool-calling advisor, not {len(loops)} ({names}); leave one out")
        if not execute_tools:
            return chain_of(others, self.model)
        return chain_of([*others, *(loops or [self._tool_loop])], self.model)

    def named_tools(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools of these *names*. Raises UnknownToolError if the resolver does not have one."""
        found: list[Tool] = []
        for name in dict.fromkeys(names):
            tool = self._resolver.resolve(name) if self._resolver is not None else None
            if tool is None:
                raise UnknownToolError(name)
            found.append(tool)
        return found


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A request in the making. Each method returns a new one, with more in it; the last one asks.

    Made by `ChatClient.prompt`.
    """

    client: ChatClient
    given_messages: tuple[Message, ...] = ()
    given_tools: tuple[object, ...] = ()
    given_tool_names: tuple[str, ...] = ()
    given_tool_context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    system_text: str | None = None
    default_system: str | None = None
    given_advisors: tuple[Advisor, ...] = ()
    given_options: ChatOptions = ChatOptions()  # noqa: RUF009  frozen
    given_context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    runs_tools: bool = True

    def user(self, text: str) -> PromptSpec:
        return self.messages(UserMessage(text))

    def messages(self, *messages: Message) -> PromptSpec:
        return replace(self, given_messages=self.given_messages + messages)

    def system(self, text: str) -> PromptSpec:
        """Put *text* first, in place of the client's own system message."""
        return replace(self, system_text=text)

    def tools(self, *tools: object) -> PromptSpec:
        """Offered beside the client's own."""
        return replace(self, given_tools=self.given_tools + tools)

    def tool_names(self, *names: str) -> PromptSpec:
        return replace(self, given_tool_names=self.given_tool_names + name_list(names, "tool_names"))

    def tool_context(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> PromptSpec:
        """Values for the tools. Each replaces the client's own value of the same key."""
        return replace(self, given_tool_context={**self.given_tool_context, **(values or {}), **more})

    def context(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> PromptSpec:
        """Values for the advisors, such as ``conversation_id="user-42"``."""
        return replace(self, given_context={**self.given_context, **(values or {}), **more})

    def advisors(self, *advisors: Advisor) -> PromptSpec:
        """Beside the client's own."""
        return replace(self, given_advisors=self.given_advisors + advisors)

    def options(self, options: ChatOptions) -> PromptSpec:
        """Replace the options that are not None in *options*."""
        return replace(self, given_options=merged(self.given_options, options))

    def execute_tools(self, run: bool) -> PromptSpec:  # noqa: FBT001  reads as a sentence
        """With False, calls are left in the response for the caller to run, with a `ToolCallingManager` say."""
        return replace(self, runs_tools=run)

    async def call(self) -> ChatResponse:
        return await self._chain().call(self.request())

    async def content(self) -> str:
        return (await self.call()).text

    @overload
    async def entity(self, kind: type[Answer], *, attempts: int = 1) -> Answer: ...

    @overload
    async def entity(self, kind: JsonObject, *, attempts: int = 1) -> JsonObject: ...

    async def entity(self, kind: Any, *, attempts: int = 1) -> Any:
        """Return the answer as a value of *kind*, which is anything that `ResponseFormat.of` takes. A JSON Schema gives
        a dict.

        If the answer does not fit, the model is told why and asked again, *attempts* times in all.
        Raises BadAnswerError, which holds the response, if the last answer does not fit.
        """
        if attempts < 1:
            raise BadSettingError(f"attempts must be 1 or more, got {attempts}")
        wanted = ResponseFormat[Any].of(kind)
        request = self.options(ChatOptions(response_format=wanted)).advisors(TypedAnswerAdvisor(wanted, attempts))
        return wanted.read(await request.call())

    async def stream(self) -> AsyncGenerator[ChatChunk]:
        """Yield the answer in pieces, from which `aggregate` makes a response. Each iteration asks anew."""
        async with closing(self._chain().stream(self.request())) as chunks:
            async for chunk in chunks:
                yield chunk

    def call_sync(self) -> ChatResponse:
        """As `call`, for code without an event loop. Raises RuntimeError if an event loop is running."""
        return run_sync(self.call(), "call()")

    def content_sync(self) -> str:
        """As `content`, for code without an event loop. Raises RuntimeError if an event loop is running."""
        return run_sync(self.content(), "content()")

    @overload
    def entity_sync(self, kind: type[Answer], *, attempts: int = 1) -> Answer: ...

    @overload
    def entity_sync(self, kind: JsonObject, *, attempts: int = 1) -> JsonObject: ...

    def entity_sync(self, kind: Any, *, attempts: int = 1) -> Any:
        """As `entity`, for code without an event loop. Raises RuntimeError if an event loop is running."""
        return run_sync(self.entity(kind, attempts=attempts), "entity()")

    def stream_sync(self) -> Generator[ChatChunk]:
        """As `stream`, for code without an event loop. Each piece is requested when the iteration reaches it, and
        leaving the iteration early ends the request. Raises RuntimeError if an event loop is running.
        """
        return iterate_sync(self.stream(), "stream()")

    def request(self) -> ChatRequest:
        """The request for the chain. Raises DuplicateToolError, UnknownToolError, or BadSettingError without a
        message.
        """
        messages = self._messages()
        if not any(not isinstance(message, SystemMessage) for message in messages):
            raise BadSettingError("there is nothing to answer: give prompt() a text or messages, or use user()")
        tools = (*self.given_tools, *self.client.named_tools(self.given_tool_names))
        once = {id(tool): tool for tool in tools}.values()  # given twice, a function would become two tools
        added = ChatOptions(tools=tuple(as_tools(*once)), tool_context=self.given_tool_context)
        return ChatRequest(Prompt(messages, merged(self.given_options, added)), dict(self.given_context))

    def _messages(self) -> tuple[Message, ...]:
        text = self.system_text
        if text is None and not any(isinstance(message, SystemMessage) for message in self.given_messages):
            text = self.default_system
        return (SystemMessage(text), *self.given_messages) if text else self.given_messages

    def _chain(self) -> Chain:
        return self.client.chain(self.given_advisors, execute_tools=self.runs_tools)


_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "description": "The task in words, with all facts that it needs: the other model knows nothing else.",
        }
    },
    "required": ["request"],
    "additionalProperties": False,
}


def chat_tool(
    client: ChatClient,
    *,
    name: str,
    description: str,
    return_direct: bool = False,
    timeout_s: float | None = None,
) -> Tool:
    """Return a tool that asks *client* and gives its answer. Each call is a conversation of its own.

    The client's tools get the ToolContext of the call on top of the client's own. Raises BadToolError for a bad name.
    """
    require_legal_name(name)
    definition = ToolDefinition(name, description=description, input_schema=_PARAMETERS)
    metadata = ToolMetadata(return_direct=return_direct, timeout_s=timeout_s)
    return Tool(definition, _AskCallback(client), metadata, source=f"chat client {name}")


@dataclass(frozen=True, slots=True)
class _AskCallback:
    client: ChatClient

    async def call(self, arguments: JsonObject, context: ToolContext) -> str:
        return await self.client.prompt(str(arguments["request"])).tool_context(context).content()
