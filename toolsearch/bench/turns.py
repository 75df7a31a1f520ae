"""From the messages of a conversation to its turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolsearch.bench.workload import Conversation, Step, Turn, Use
from toolsearch.tools.blocks import text_block
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.arguments import arguments_object
from toolsearch.wire.content import block_as_text
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


def conversation_of(messages: Iterable[Message]) -> Conversation:
    """Return *messages* as turns; each begins with what the user says.

    Replies in a row are one reply, as some logs have each part of it in a line of its own, and so are the user's
    messages in a row. Results that no call of the conversation has asked for are left out.
    """
    systems: list[str] = []
    turns: list[_GrowingTurn] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            systems.append(message.text)
        elif isinstance(message, UserMessage):
            _hear_user(turns, said_by_user(message))
        elif isinstance(message, AssistantMessage):
            _hear_model(turns, message)
        elif isinstance(message, ToolMessage):
            for result in message.results:
                _give_back(turns, result)
    return Conversation(tuple(turn.finished() for turn in turns), "\n\n".join(filter(None, systems)))


def said_by_user(message: UserMessage) -> str:
    return text_of((*message.content, text_block(message.text)))


def text_of(blocks: Iterable[JsonObject]) -> str:
    """What is no text is named."""
    return "\n".join(filter(None, map(block_as_text, blocks)))


@dataclass(slots=True)
class _GrowingStep:
    texts: list[str]
    calls: list[ToolCall]
    results: dict[int, str] = field(default_factory=dict[int, str])  # by the call's place

    def finished(self) -> Step:
        uses = [
            Use(call.name, arguments_object(call), self.results.get(place, "")) for place, call in enumerate(self.calls)
        ]
        return Step(tuple(uses), "\n".join(self.texts))


@dataclass(slots=True)
class _GrowingTurn:
    users: list[str]
    replies: list[_GrowingStep] = field(default_factory=list[_GrowingStep])

    def finished(self) -> Turn:
        """What is said in a reply without calls is the answer."""
        steps = tuple(reply.finished() for reply in self.replies if reply.calls)
        answers = [text for reply in self.replies if not reply.calls for text in reply.texts]
        return Turn("\n".join(self.users), steps, "\n".join(answers))


def _hear_user(turns: list[_GrowingTurn], said: str) -> None:
    if turns and not turns[-1].replies:
        turns[-1].users.append(said)
    else:
        turns.append(_GrowingTurn([said]))


def _hear_model(turns: list[_GrowingTurn], message: AssistantMessage) -> None:
    if not turns:
        turns.append(_GrowingTurn([]))
    replies = turns[-1].replies
    if not replies or replies[-1].results:
        replies.append(_GrowingStep([], []))
    replies[-1].texts += [message.text] if message.text else []
    replies[-1].calls += message.tool_calls


def _give_back(turns: list[_GrowingTurn], result: ToolResult) -> None:
    """To the last call of that id that has none yet: some endpoints number the calls of each reply anew."""
    for turn in reversed(turns):
        for reply in reversed(turn.replies):
            for place, call in enumerate(reply.calls):
                if call.id == result.call_id and place not in reply.results:
                    reply.results[place] = text_of(result.content)
                    return
