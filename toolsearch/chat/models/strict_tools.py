"""Strict mode of OpenAI for the tools of one request: schemas on the way out, nulls on the way in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolsearch.calling.absent import without_absent
from toolsearch.errors import BadToolError, ToolSearchError
from toolsearch.tools.arguments import parse_arguments
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.strict import strict_schema
from toolsearch.wire.answers import OTHER_CHOICES, ChatResponse
from toolsearch.wire.messages import AssistantMessage
from toolsearch.wire.sendable_tools import sendable_definition


@dataclass(frozen=True, slots=True)
class StrictTools:
    """The schemas of the tools that strict mode can express, by name. Tools that it cannot are sent as they are."""

    sent_schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    strict_schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    @classmethod
    def of(cls, tools: Sequence[Tool], wire_format: str) -> StrictTools:
        own: dict[str, JsonObject] = {}
        strict: dict[str, JsonObject] = {}
        for tool in tools:
            schema = sendable_definition(tool.definition, wire_format).input_schema
            try:
                strict[tool.name] = strict_schema(schema)
            except BadToolError:
                continue
            own[tool.name] = schema
        return cls(own, strict)

    def read(self, message: AssistantMessage) -> AssistantMessage:
        """Return *message* with calls that fit the schemas before they were strict; what goes back stays as it is."""
        calls = tuple(map(self._call, message.tool_calls))
        return replace(message, tool_calls=calls) if self.sent_schemas else message

    def read_answer(self, answer: ChatResponse) -> ChatResponse:
        """Return *answer* with such calls in its message, and in those of its other choices."""
        if not self.sent_schemas:
            return answer
        metadata = dict(answer.metadata)
        if OTHER_CHOICES in metadata:
            metadata[OTHER_CHOICES] = tuple(map(self.read, metadata[OTHER_CHOICES]))
        return replace(answer, message=self.read(answer.message), metadata=metadata)

    def _call(self, call: ToolCall) -> ToolCall:
        schema = self.sent_schemas.get(call.name)
        arguments = call.arguments
        if schema is None or not isinstance(arguments, str):
            return call
        try:
            filled = without_absent(schema, parse_arguments(arguments))
        except ToolSearchError:
            return call  # refused when it is run
        return replace(call, arguments=json.dumps(filled))
