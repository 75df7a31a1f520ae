"""The tool loop, run by yourself: over a client and over a bare model, whole and streamed."""

from __future__ import annotations

import asyncio

from model import model_or

from toolsearch import AttachedTools, ToolCallingManager, TurnCounter, as_tools, tool
from toolsearch.chat import (
    ChatClient,
    ChatOptions,
    ChatResponse,
    Message,
    Prompt,
    ToolMessage,
    UserMessage,
    aggregate,
    scripted_calls,
)


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


TOOLS = as_tools(multiply)
QUESTION = UserMessage("What is 6 * 7?")
MANAGER = ToolCallingManager()


async def run_calls(response: ChatResponse, turn: TurnCounter) -> list[Message]:
    """Return what to append to the conversation; the limits hold for all the calls that *turn* has counted."""
    results = await MANAGER.execute(response.message.tool_calls, AttachedTools(TOOLS), turn=turn)
    print("  ", [f"{result.name}: {result.text}" for result in results])
    return [response.message, ToolMessage(tuple(results))]


async def with_a_client(client: ChatClient, *, streamed: bool) -> str:
    messages: list[Message] = [QUESTION]
    turn = TurnCounter()  # one for each message of the user
    while True:
        request = client.prompt(messages)
        response = aggregate([piece async for piece in request.stream()]) if streamed else await request.call()
        if not response.message.tool_calls:
            return response.text
        messages += await run_calls(response, turn)


async def with_a_model(*, streamed: bool) -> str:
    model, turn = model_or(scripted_calls(("multiply", {"a": 6, "b": 7})), "42."), TurnCounter()
    prompt = Prompt((QUESTION,), ChatOptions(tools=tuple(TOOLS)))
    while True:
        response = aggregate([piece async for piece in model.stream(prompt)]) if streamed else await model.call(prompt)
        if not response.message.tool_calls:
            return response.text
        prompt = Prompt((*prompt.messages, *await run_calls(response, turn)), prompt.options)


async def main() -> None:
    asks = scripted_calls(("multiply", {"a": 6, "b": 7}))
    client = ChatClient(model_or(asks, "42.", asks, "42."), tools=TOOLS, execute_tools=False)
    for streamed in (False, True):
        print("client,", "streamed:" if streamed else "whole:", await with_a_client(client, streamed=streamed))
        print("model,", "streamed:" if streamed else "whole:", await with_a_model(streamed=streamed))


if __name__ == "__main__":
    asyncio.run(main())
