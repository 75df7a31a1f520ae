"""A chat model that answers at once what a test wrote down, whole or in pieces, and keeps what it was asked."""

from collections.abc import AsyncIterator, Callable, Sequence

from toolsearch.chat.model import Prompt
from toolsearch.tools.calls import ToolCall
from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta, Usage
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import AssistantMessage

Reply = ChatResponse | Exception | Sequence[ChatChunk] | Callable[[Prompt], ChatResponse]


class ScriptedModel:
    """Replies in order. An Exception is raised, chunks are streamed as they are, a function is asked each time."""

    provider = "scripted"
    endpoint = Endpoint("scripted")
    native_tool_search = False

    def __init__(self, *replies: Reply) -> None:
        self.prompts: list[Prompt] = []
        self.closed_streams = 0
        self._replies = list(replies)

    @property
    def sent(self) -> list[list[object]]:
        """The messages of each prompt."""
        return [list(prompt.messages) for prompt in self.prompts]

    async def call(self, prompt: Prompt) -> ChatResponse:
        reply = self._next(prompt)
        assert isinstance(reply, ChatResponse), "chunks can only be streamed"
        return reply

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        reply = self._next(prompt)
        try:
            for chunk in pieces(reply) if isinstance(reply, ChatResponse) else reply:
                yield chunk
        finally:
            self.closed_streams += 1

    def _next(self, prompt: Prompt) -> ChatResponse | Sequence[ChatChunk]:
        self.prompts.append(prompt)
        reply = self._replies[0] if callable(self._replies[0]) else self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply(prompt) if callable(reply) else reply


def says(text: str, *, usage: Usage = Usage(10, 1)) -> ChatResponse:  # noqa: B008
    return ChatResponse(AssistantMessage(text), usage=usage)


def calls(*asked: tuple[str, str], text: str = "", usage: Usage = Usage(10, 1)) -> ChatResponse:  # noqa: B008
    """A response with tool calls, each a name and arguments; ids are c1, c2 ... within the response."""
    wanted = tuple(ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(asked, 1))
    return ChatResponse(AssistantMessage(text, wanted), "tool_calls", usage)


def pieces(response: ChatResponse) -> list[ChatChunk]:
    """*response* as a provider streams it: text and arguments in halves, then finish reason, usage and message."""
    text, chunks = response.text, []
    if text:
        chunks += [ChatChunk(text=text[: len(text) // 2]), ChatChunk(text=text[len(text) // 2 :])]
    for index, call in enumerate(response.message.tool_calls):
        arguments = str(call.arguments)
        half = len(arguments) // 2
        chunks.append(ChatChunk(tool_calls=(ToolCallDelta(index, call.id, call.name, arguments[:half]),)))
        chunks.append(ChatChunk(tool_calls=(ToolCallDelta(index, arguments=arguments[half:]),)))
    chunks.append(ChatChunk(finish_reason=response.finish_reason))
    chunks.append(ChatChunk(usage=response.usage, message=response.message))
    return chunks
