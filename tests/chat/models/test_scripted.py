"""The model whose answers are written down: what it says, whole and in pieces, and what it remembers."""

import pytest

from toolsearch.chat import Prompt, ScriptedModel, UserMessage, aggregate, scripted_calls
from toolsearch.errors import ChatModelError

PROMPT = Prompt((UserMessage("Hello?"),))


async def test_replies_come_in_order_and_prompts_are_kept():
    model = ScriptedModel("One.", lambda prompt: prompt.messages[0].text.upper())

    assert [(await model.call(PROMPT)).text, (await model.call(PROMPT)).text] == ["One.", "HELLO?"]
    assert model.prompts == [PROMPT, PROMPT]


async def test_a_streamed_reply_is_the_same_as_a_whole_one():
    reply = scripted_calls(("add", {"a": 1}), ("now", {}), text="Let me  see.\n")

    chunks = [chunk async for chunk in ScriptedModel(reply).stream(PROMPT)]

    assert [chunk.text for chunk in chunks if chunk.text] == ["Let", " me", " ", " see.\n"]
    assert aggregate(chunks) == reply == await ScriptedModel(reply).call(PROMPT)


async def test_an_exception_is_raised_and_the_end_of_the_script_is_an_error():
    model = ScriptedModel(TimeoutError("too slow"))

    with pytest.raises(TimeoutError, match="too slow"):
        await model.call(PROMPT)
    with pytest.raises(ChatModelError, match="ended before request 2"):
        await model.call(PROMPT)
