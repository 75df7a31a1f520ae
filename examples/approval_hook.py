"""A person is asked before a tool changes anything. The model reads why its call was refused.

Needs nothing beyond `pip install .`. The answers are written down here; with --ask, you are asked in the terminal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from model import model_or, show

from toolsearch import Allow, Deny, Tool, ToolCall, ToolCallingManager, ToolContext, tool
from toolsearch.chat import ChatClient, scripted_calls


@tool(annotations={"readOnlyHint": True})
def balance(account: str) -> int:
    """Get the balance of an account."""
    return {"savings": 100}[account]


@tool
def transfer(source: str, target: str, amount: int) -> str:
    """Transfer money between accounts."""
    return f"{amount} went from {source} to {target}"


@tool(annotations={"destructiveHint": True})
def close_account(account: str) -> str:
    """Close an account for good."""
    return f"{account} is closed"


class Approval:
    """Lets through what only reads, and asks for the rest. *answers* stand for a person; None asks a real one."""

    def __init__(self, answers: Iterator[str] | None) -> None:
        self._answers = answers
        self._asking = asyncio.Lock()  # the calls of one reply come at the same time, and a person reads one by one

    async def __call__(self, call: ToolCall, wanted: Tool, context: ToolContext) -> Allow | Deny:
        if wanted.definition.annotations.get("readOnlyHint"):
            return Allow()
        async with self._asking:
            answer = await self._ask(f"{context['user']}, may I call {call.name} with {call.arguments}?")
        return Allow() if answer == "yes" else Deny(f"{context['user']} said: {answer}")

    async def _ask(self, question: str) -> str:
        if self._answers is None:
            return await asyncio.to_thread(input, f"{question} ")  # no timeout of a call runs meanwhile
        answer = next(self._answers)
        print(f"[{question} {answer}]")
        return answer


def main() -> None:
    model = model_or(
        scripted_calls(
            ("balance", {"account": "savings"}),
            ("transfer", {"source": "savings", "target": "rent", "amount": 80}),
            ("close_account", {"account": "savings"}),
        ),
        "I have paid the rent. The account stays open, as you wish.",
    )
    approval = Approval(None if "--ask" in sys.argv else iter(["yes", "no, there is money on it"]))
    client = ChatClient(model, tools=[balance, transfer, close_account], manager=ToolCallingManager(before=[approval]))
    show(client.prompt("Pay the rent, then close my savings account.").tool_context(user="Ada").call_sync())


if __name__ == "__main__":
    main()
