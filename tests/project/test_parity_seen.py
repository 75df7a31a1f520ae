"""What the model sees, request by request, beside what the reference design would show it of the same messages.

Its rule is short, and written here anew: beside the search tool it lists what the answers of the search tool in the
turn have named: those of all rounds, or without accumulation those of the last round that has any.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.tool_search import FUNCTIONS, SEARCH, asked, search, searcher
from toolsearch.chat import ChatResponse, Message, Prompt, ToolMessage, aggregate
from toolsearch.chat.advisor import chain_of
from toolsearch.wire import Endpoint

SCRIPT = (
    search("select:send_mail"),
    search("select:list_events", "select:pay_bill"),
    calls(("list_events", '{"day": "today"}')),
    search("select:list_events"),
    search("select:convert_time"),
    calls(("convert_time", '{"hour": 7}')),
    says("Done."),
)
ENDPOINTS = [Endpoint("scripted"), Endpoint("openai", "gpt-5"), Endpoint("anthropic", "claude-opus-4-8")]


class Model(ScriptedModel):
    """Keeps what it may call in each request: what is listed, and what messages have added and withdrawn since."""

    def __init__(self, endpoint: Endpoint, *replies: Any) -> None:
        super().__init__(*replies)
        self.endpoint = endpoint
        self.seen: list[set[str]] = []

    def _next(self, prompt: Prompt) -> Any:
        seen = {tool.name for tool in prompt.options.tools}
        for message in prompt.messages:
            added = getattr(message, "added", ())
            seen = (seen | {definition.name for definition in added}) - {*getattr(message, "removed", ())}
        self.seen.append(seen)
        return super()._next(prompt)


def as_the_reference_shows(messages: Sequence[Message], *, accumulate: bool) -> set[str]:
    rounds: list[set[str]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            found = [result.structured["tools"] for result in message.results if result.name == SEARCH]
            rounds += [{name for each in found for name in each}] if found else []
    return {SEARCH}.union(*(rounds if accumulate else rounds[-1:]))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.wire_format)
@pytest.mark.parametrize("streams", [False, True], ids=["call", "stream"])
@pytest.mark.parametrize("accumulate", [True, False])
async def test_the_model_sees_in_each_request_what_the_reference_would_show_it(
    accumulate: bool, streams: bool, endpoint: Endpoint
) -> None:
    model = Model(endpoint, *SCRIPT)
    chain = chain_of([searcher(accumulate=accumulate)], model)

    response: ChatResponse = (
        aggregate([chunk async for chunk in chain.stream(asked())]) if streams else await chain.call(asked())
    )

    assert response.text == "Done."
    shown = [as_the_reference_shows(prompt.messages, accumulate=accumulate) for prompt in model.prompts]
    assert model.seen == shown
    assert shown[-1] == ({SEARCH, *(each.__name__ for each in FUNCTIONS)} if accumulate else {SEARCH, "convert_time"})
