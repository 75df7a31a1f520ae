"""A tool fails: the model or the application is told, and other calls of the reply keep their results."""

from __future__ import annotations

import logging

from model import model_or, show

from toolsearch import DefaultToolExecutionErrorProcessor, ToolCallingManager, partial_results, tool
from toolsearch.chat import ChatClient, scripted_calls
from toolsearch.errors import ToolExecutionError

logging.getLogger("toolsearch").setLevel(logging.CRITICAL)  # which else would log the failures with their tracebacks


@tool
def balance(account: str) -> int:
    """Get the balance of an account."""
    if account == "secret":
        raise LookupError("Ada has no account of this name")
    return 100


def main() -> None:
    both = scripted_calls(("balance", {"account": "secret"}), ("balance", {"account": "savings"}))
    wrong = scripted_calls(("balance", {"acount": "savings"}), ("balanse", {}))
    model = model_or(both, "There are 100 in savings; I know of no other.", wrong, "Let me try again.", both, both)
    request = ChatClient(model, tools=[balance]).prompt("What do I have?")
    show(request.call_sync())
    show(request.call_sync())

    for processor in (
        DefaultToolExecutionErrorProcessor(always_raise=True),
        DefaultToolExecutionErrorProcessor(reraise=[LookupError]),
    ):
        client = ChatClient(model, tools=[balance], manager=ToolCallingManager(error_processor=processor))
        try:
            client.prompt("What do I have?").content_sync()
        except (ToolExecutionError, LookupError) as error:
            print(f"{type(error).__name__}: {error}; the other call gave {partial_results(error)[1].text}")


if __name__ == "__main__":
    main()
