"""Memory of a conversation: around the tool loop, inside it, or longer than the process."""

from __future__ import annotations

import tempfile
from pathlib import Path

from model import model_or

from toolsearch import tool
from toolsearch.chat import (
    Advisor,
    ChatClient,
    MemoryAdvisor,
    MessageWindowMemory,
    SqliteMessageStore,
    ToolCallingAdvisor,
    scripted_calls,
)


@tool
def book_table(people: int) -> str:
    """Book a table."""
    return f"booked for {people}"


def talk(title: str, client: ChatClient, memory: MessageWindowMemory) -> None:
    """Hold a conversation of two turns, and show what is remembered of it."""
    for said in ("Book a table for two.", "How many will we be?"):
        print(f"{title}: {client.prompt(said).context(conversation_id='ada').content_sync()}")
    print([type(message).__name__ for message in memory.get("ada")])


def main() -> None:
    asks = scripted_calls(("book_table", {"people": 2}))

    around = MessageWindowMemory(max_messages=20)  # a window never parts a call from its result
    model = model_or(asks, "Booked.", "Two.")
    talk("around the loop", ChatClient(model, tools=[book_table], advisors=[MemoryAdvisor(around)]), around)

    inside = MessageWindowMemory()
    loop = ToolCallingAdvisor(conversation_history=False)  # the memory completes each request of the loop
    advisors: list[Advisor] = [loop, MemoryAdvisor(inside, order=loop.order + 100, tool_messages=False)]
    model = model_or(asks, "Booked.", "Two.")
    talk("inside the loop", ChatClient(model, tools=[book_table], advisors=advisors), inside)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.db"
        for script in ((asks, "Booked."), ("Two.",)):  # two processes, so to say
            with SqliteMessageStore(path) as store:
                kept = MemoryAdvisor(MessageWindowMemory(store))
                client = ChatClient(model_or(*script), tools=[book_table], advisors=[kept])
                print("on disk:", client.prompt("A table for two?").context(conversation_id="ada").content_sync())


if __name__ == "__main__":
    main()
