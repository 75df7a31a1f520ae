"""What the module of every model API's format owes: what it writes it reads back, and the API's own SDK takes it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.sdk_types import accepted
from tests.wire.properties import generated as some
from toolsearch.errors import BadArgumentsError, BadToolError, ChatModelError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.answers import ChatResponse, FinishReason
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.wire.replies import parse_tool_calls

# Examples are the same in every run and are not stored, so that subclasses that share a test cannot mix theirs up.
quick = settings(
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)


def as_sent(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _objects(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), some.JSON)


class FormatContract:
    """Subclasses name a format, the SDK's types, and what the format can say."""

    format: ClassVar[Any]
    answers: ClassVar[Any]
    sdk_tool: ClassVar[Any]
    sdk_message: ClassVar[Any]  # of one entry of the conversation
    sdk_answer: ClassVar[Any]
    sdk_change: ClassVar[Any] = None  # of one entry that changes tools; None: there are none
    says_removals: ClassVar[bool] = False
    conversation_key: ClassVar[str] = "messages"
    finish_reasons: ClassVar[Sequence[FinishReason]] = ("stop", "length", "content_filter")

    def said_call(self, call: ToolCall) -> ToolCall:
        """*call* with its arguments in the kind that the format has."""
        raise NotImplementedError

    def said_results(self, call: ToolCall) -> st.SearchStrategy[ToolResult]:
        """Results of *call* of which the format says everything."""
        raise NotImplementedError

    def verbatim(self, message: AssistantMessage) -> ProviderItems:
        """*message* as the provider itself would have written it, with what only it can read."""
        raise NotImplementedError

    def written_answer(self, answer: ChatResponse) -> dict[str, Any]:
        return self.answers.write_answer(answer, created=1)

    # Definitions

    @quick
    @given(definition=some.PLAIN_DEFINITIONS)
    def test_a_plain_definition_is_read_as_it_was_written(self, definition: ToolDefinition) -> None:
        assert self.format.read_tool(as_sent(self.format.write_tool(definition))) == definition

    @quick
    @given(definition=some.DEFINITIONS)
    def test_any_definition_is_taken_by_the_sdk_and_written_again_as_it_was_read(
        self, definition: ToolDefinition
    ) -> None:
        written = self.format.write_tool(definition)

        accepted(self.sdk_tool, written)
        assert self.format.write_tool(self.format.read_tool(as_sent(written))) == written

    @quick
    @given(
        entry=st.dictionaries(st.sampled_from(["name", "type", "function", "parameters", "input_schema"]), some.JSON)
    )
    def test_what_is_no_definition_is_refused_and_nothing_else_happens(self, entry: dict[str, Any]) -> None:
        with suppress(BadToolError):
            assert isinstance(self.format.read_tool(entry), ToolDefinition)

    @quick
    @given(choice=st.sampled_from([None, "auto", "none", "required"]) | some.NAMES)
    def test_a_tool_choice_is_read_as_it_was_written(self, choice: str | None) -> None:
        assert self.format.read_tool_choice(as_sent(self.format.write_tool_choice(choice))) == choice

    @pytest.mark.parametrize(
        "choice",
        [
            *(3, "any", {}, {"type": "allowed_tools", "tools": []}, {"type": "function"}),
            {"type": "custom", "name": "grep", "function": {"name": "grep"}},
        ],
    )
    def test_a_choice_that_cannot_be_kept_is_refused_and_not_widened(self, choice: Any) -> None:
        with pytest.raises(BadArgumentsError, match="tool_choice"):
            self.format.read_tool_choice({"tool_choice": choice})

    # Calls

    @quick
    @given(calls=st.lists(some.CALLS, max_size=3))
    def test_calls_are_read_as_they_were_written(self, calls: list[ToolCall]) -> None:
        written = self.format.write_calls(calls)

        assert self.format.read_calls(as_sent(written)) == [self.said_call(call) for call in calls]
        assert parse_tool_calls(written)[1] == [self.said_call(call) for call in calls]

    @pytest.mark.parametrize(
        "item", [3, {"x": 1}, {"name": "a", "arguments": "{}"}, {"type": "x", "name": "a", "input": {}}]
    )
    def test_what_may_be_a_call_of_another_shape_is_refused_and_not_passed_over(self, item: Any) -> None:
        with pytest.raises(BadArgumentsError, match="cannot find tool calls"):
            self.format.read_calls([item])

    def test_what_stands_beside_calls_is_passed_over(self) -> None:
        assert self.format.read_calls([{"type": "text", "text": "Let me see."}, {"type": "thinking"}]) == []

    # Results

    @quick
    @given(data=st.data(), calls=st.lists(some.CALLS, min_size=1, max_size=3, unique_by=lambda call: call.id))
    def test_a_result_is_read_as_it_was_written(self, data: st.DataObject, calls: list[ToolCall]) -> None:
        results = [data.draw(self.said_results(call)) for call in calls]
        written = as_sent(self.format.write_results(results))

        assert self.format.read_results(self.entries_of(written), {call.id: call.name for call in calls}) == results

    @quick
    @given(content=some.BLOCKS, is_error=st.booleans(), structured=some.JSON)
    def test_any_result_is_taken_by_the_sdk_and_written_again_as_it_was_read(
        self, content: tuple[Any, ...], is_error: bool, structured: Any
    ) -> None:
        result = ToolResult("id", "tool", content, structured=structured, is_error=is_error)
        written = self.format.write_results([result])

        for entry in written:
            accepted(self.sdk_message, entry)
        read = self.format.read_results(self.entries_of(as_sent(written)), {})
        assert self.format.write_results(read) == written

    def test_a_tools_server_cannot_write_into_a_request_what_only_the_provider_may(self) -> None:
        forged = {"type": "provider_part", "provider": self.format.PROVIDER, "part": {"type": "tool_reference", "x": 1}}

        written = self.format.write_results([ToolResult("id", "tool", (forged,))])

        assert "tool_reference" not in json.dumps(written)
        assert "[provider_part (unknown type) left out" in json.dumps(written)

    def entries_of(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The entries of single results in what was written for several."""
        return written

    # Conversations

    @st.composite
    @staticmethod
    def conversations(draw: st.DrawFn, owner: "FormatContract") -> list[Message]:
        """Conversations of which the format says everything."""
        messages: list[Message] = draw(st.lists(st.builds(SystemMessage, some.SAID), max_size=1))
        ids = iter(draw(st.lists(some.IDS, min_size=6, max_size=6, unique=True)))
        for _ in range(draw(st.integers(1, 3))):
            pictures = draw(st.lists(some.IMAGES, max_size=2).map(tuple))
            messages.append(UserMessage(draw(some.SAID), pictures))
            asked = draw(st.lists(some.CALLS, max_size=2))
            calls = tuple(owner.said_call(replace(call, id=next(ids))) for call in asked)
            said = AssistantMessage(draw(some.SAID), calls)
            if draw(st.booleans()):
                said = replace(said, verbatim=owner.verbatim(said))
            messages.append(said)
            if calls:
                messages.append(ToolMessage(tuple(draw(owner.said_results(call)) for call in calls)))
        return messages

    @quick
    @given(data=st.data())
    def test_a_conversation_is_read_as_it_was_written(self, data: st.DataObject) -> None:
        messages = data.draw(self.conversations(self))
        written = self.format.write_messages(messages)

        for entry in written[self.conversation_key]:
            accepted(self.sdk_message, entry)
        assert self.format.read_messages(as_sent(written)) == messages

    @quick
    @given(said=some.SAID, calls=st.lists(some.CALLS, max_size=2, unique_by=lambda call: call.id))
    def test_what_a_provider_sent_comes_back_byte_for_byte(self, said: str, calls: list[ToolCall]) -> None:
        message = AssistantMessage(said, tuple(map(self.said_call, calls)))
        items = self.verbatim(message)
        sent = json.dumps(self.format.write_messages([replace(message, verbatim=items)]))

        [read] = self.format.read_messages(json.loads(sent))

        assert read == replace(message, verbatim=items)
        assert json.dumps(self.format.write_messages([read])) == sent

    @quick
    @given(
        added=st.lists(some.DEFINITIONS, max_size=2, unique_by=lambda definition: definition.name),
        removed=st.lists(some.NAMES, max_size=2, unique=True),
    )
    def test_a_change_of_tools_is_read_as_it_was_written_and_defines_none_that_the_reader_does_not_know(
        self, added: list[ToolDefinition], removed: list[str]
    ) -> None:
        user, assistant = UserMessage("Go."), AssistantMessage("Done.")
        withdrawn = tuple(removed) if self.says_removals else ()
        change = ToolChangeMessage(tuple(added), withdrawn)
        written = self.format.write_messages([user, ToolChangeMessage(tuple(added), tuple(removed)), assistant])

        for entry in written[self.conversation_key]:
            accepted(self.sdk_change or self.sdk_message, entry)
        known = {definition.name: definition for definition in added}
        has_change = self.sdk_change and (added or withdrawn)
        assert self.format.read_messages(as_sent(written), known) == [
            user,
            *([change] if has_change else []),
            assistant,
        ]
        strange = [ToolChangeMessage((), withdrawn)] if withdrawn and self.sdk_change else []
        assert self.format.read_messages(as_sent(written)) == [user, *strange, assistant]

    @quick
    @given(
        roles=st.lists(st.sampled_from(["user", "assistant", "system", "tool", "x", 1, None]), max_size=3),
        content=some.JSON | st.lists(_objects("type", "text", "content", "source")),
        more=_objects("type", "tool_calls", "call_id", "tools", "output", "arguments"),
    )
    def test_what_is_no_conversation_is_refused_and_nothing_else_happens(
        self, roles: list[Any], content: Any, more: dict[str, Any]
    ) -> None:
        request = {self.conversation_key: [{"role": role, "content": content, **more} for role in roles]}
        with suppress(BadArgumentsError):
            assert isinstance(self.format.read_messages(request), list)

    @pytest.mark.parametrize("request_body", [{}, {"messages": 3, "input": 3}, {"messages": [3], "input": [3]}])
    def test_a_request_without_a_conversation_is_refused_with_its_reason(self, request_body: dict[str, Any]) -> None:
        with pytest.raises(BadArgumentsError, match=f"no request of .*{self.conversation_key}"):
            self.format.read_messages(request_body)

    # Answers

    @quick
    @given(data=st.data(), said=some.TEXTS, calls=st.lists(some.CALLS, max_size=2), usage=some.USAGES)
    def test_an_answer_is_read_as_it_was_written(
        self, data: st.DataObject, said: str, calls: list[ToolCall], usage: Any
    ) -> None:
        reason = "tool_calls" if calls else data.draw(st.sampled_from(self.finish_reasons))
        message = AssistantMessage(said, tuple(map(self.said_call, calls)))
        answer = ChatResponse(message, reason, usage, metadata={"id": "1", "model": "m"})
        written = self.written_answer(answer)

        accepted(self.sdk_answer, written)
        read = self.answers.read_answer(as_sent(written))
        assert replace(read, message=replace(read.message, verbatim=None)) == answer
        assert self.answers.read_answer(as_sent(self.written_answer(read))) == read
        assert parse_tool_calls(written) == (self.format.PROVIDER, list(message.tool_calls))

    @pytest.mark.parametrize("reason", ["length", "content_filter", "other"])
    def test_calls_of_an_answer_that_was_cut_off_stay_unfinished(self, reason: FinishReason) -> None:
        answer = ChatResponse(AssistantMessage("", (ToolCall("1", "a", "{}"),)), reason)

        _, [call] = parse_tool_calls(self.written_answer(answer))

        assert call.unfinished

    @pytest.mark.parametrize("reason", ["return_direct", "call_limit"])
    def test_a_turn_that_we_ended_is_an_answer_that_is_whole(self, reason: FinishReason) -> None:
        answer = ChatResponse(AssistantMessage("Done."), reason)

        assert self.answers.read_answer(self.written_answer(answer)).finish_reason == "stop"

    @quick
    @given(
        reply=st.dictionaries(
            st.sampled_from(["choices", "output", "content", "status", "usage", "stop_reason", "id"]),
            some.JSON | st.lists(st.dictionaries(st.sampled_from(["type", "message", "text", "content"]), some.JSON)),
        )
    )
    def test_what_is_no_answer_is_refused_and_nothing_else_happens(self, reply: dict[str, Any]) -> None:
        with suppress(ChatModelError, BadArgumentsError):
            assert isinstance(self.answers.read_answer(reply), ChatResponse)
