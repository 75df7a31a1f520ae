"""What a chat remembers: windows, stores, and the advisor outside and inside the tool loop."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch.chat.advisor import TOOL_LOOP_ORDER
from toolsearch.chat.client import ChatClient, PromptSpec
from toolsearch.chat.memory import MemoryAdvisor, MessageWindowMemory, SqliteMessageStore, paired, window
from toolsearch.chat.model import Prompt
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.errors import BadSettingError, ChatModelError, StorageError
from toolsearch.storage.memory import InMemoryMessageStore
from toolsearch.storage.sessions import MessageStore
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.function_tools import tool
from toolsearch.wire.answers import ChatResponse, aggregate
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)

ADDS = calls(("add", '{"a": 2, "b": 3}'))
FIVE = ToolMessage((ToolResult("c1", "add", ({"type": "text", "text": "5"},)),))


def add(a: int, b: int) -> int:
    return a + b


def said(text: str) -> list[Message]:
    return [UserMessage(text), AssistantMessage(text.upper())]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MessageStore[Message]]:
    if request.param == "memory":
        yield InMemoryMessageStore()
        return
    with SqliteMessageStore(tmp_path / "chat.db") as kept:
        yield kept


# Windows


def test_what_was_added_is_remembered_in_its_order_and_by_conversation(store: MessageStore[Message]) -> None:
    memory = MessageWindowMemory(store)

    memory.add("a", said("one"))
    memory.add("b", said("other"))
    memory.add("a", said("two"))

    assert memory.get("a") == said("one") + said("two")
    assert memory.get("b") == said("other")
    assert memory.get("never was") == []


def test_a_cleared_conversation_is_forgotten_and_the_others_are_not(store: MessageStore[Message]) -> None:
    memory = MessageWindowMemory(store)
    memory.add("a", said("one"))
    memory.add("b", said("other"))

    memory.clear("a")
    memory.clear("never was")

    assert (memory.get("a"), memory.get("b")) == ([], said("other"))


def test_the_oldest_exchanges_go_first(store: MessageStore[Message]) -> None:
    memory = MessageWindowMemory(store, max_messages=5)

    for text in ("one", "two", "three"):
        memory.add("a", said(text))

    assert memory.get("a") == said("two") + said("three")
    assert store.load("a") == memory.get("a")


def test_a_call_is_never_parted_from_its_result() -> None:
    """Five messages would fit, but the fifth from the end is in the midst of an exchange."""
    exchange: list[Message] = [UserMessage("2 + 3?"), ADDS.message, FIVE, AssistantMessage("5")]
    memory = MessageWindowMemory(max_messages=5)

    memory.add("a", exchange)
    memory.add("a", said("thanks"))

    assert memory.get("a") == said("thanks")


def test_the_newest_exchange_is_kept_even_if_it_is_longer_than_the_window() -> None:
    exchange = [UserMessage("2 + 3?"), ADDS.message, FIVE, ADDS.message, FIVE, AssistantMessage("5")]
    memory = MessageWindowMemory(max_messages=2)

    memory.add("a", said("hi"))
    memory.add("a", exchange)

    assert memory.get("a") == exchange


def test_one_system_message_is_kept_the_newest_and_it_counts() -> None:
    memory = MessageWindowMemory(max_messages=3)

    memory.add("a", [SystemMessage("old"), *said("one")])
    memory.add("a", [SystemMessage("new"), *said("two")])

    assert memory.get("a") == [SystemMessage("new"), *said("two")]


def test_calls_without_results_and_results_without_calls_are_not_given_out() -> None:
    memory = MessageWindowMemory()

    memory.add("a", [UserMessage("2 + 3?"), ADDS.message])
    assert memory.get("a") == [UserMessage("2 + 3?")]
    memory.add("a", [FIVE])
    assert memory.get("a") == [UserMessage("2 + 3?"), ADDS.message, FIVE]
    memory.add("a", [FIVE, AssistantMessage("5")])
    assert memory.get("a") == [UserMessage("2 + 3?"), ADDS.message, FIVE, AssistantMessage("5")]


# Changes of the tools

ADDED = ToolChangeMessage((ToolDefinition("mail"),))


def test_a_change_of_tools_goes_with_the_message_that_it_follows(store: MessageStore[Message]) -> None:
    memory = MessageWindowMemory(store, max_messages=8)
    asked, answer = UserMessage("2 + 3?"), AssistantMessage("5")
    exchange = [asked, ADDED, ADDS.message, FIVE, ADDED, answer]

    memory.add("a", exchange)
    assert memory.get("a") == exchange
    memory.add("a", said("bye"))
    assert memory.get("a") == [*exchange, *said("bye")]
    memory.add("a", said("well"))
    assert memory.get("a") == [*said("bye"), *said("well")]


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ([ADDED, AssistantMessage("5")], [AssistantMessage("5")]),
        ([UserMessage("?"), FIVE, ADDED], [UserMessage("?")]),
        ([UserMessage("?"), ADDS.message, ADDED, FIVE], [UserMessage("?")]),
        ([UserMessage("?"), ADDED, ADDS.message], [UserMessage("?"), ADDED]),
    ],
    ids=["after nothing", "after no call", "before the result", "after the user"],
)
def test_a_change_of_tools_is_not_kept_without_what_it_follows(stored: list[Message], kept: list[Message]) -> None:
    assert paired(stored) == kept


def test_what_a_user_says_in_two_messages_is_one_exchange() -> None:
    messages = [UserMessage("Look."), UserMessage("And?"), AssistantMessage("Well.")]
    assert window([*said("old"), *messages], 3) == messages


def test_a_window_has_room_for_a_message() -> None:
    with pytest.raises(BadSettingError, match="max_messages"):
        MessageWindowMemory(max_messages=0)


def test_what_threads_add_together_stays_together(store: MessageStore[Message]) -> None:
    memory = MessageWindowMemory(store, max_messages=100)

    def work(number: int) -> None:
        for _ in range(5):
            memory.add("a", said(f"t{number}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    kept = memory.get("a")
    assert len(kept) == 40
    assert all(answer.text == asked.text.upper() for asked, answer in zip(kept[::2], kept[1::2], strict=True))


# SQLite


def test_a_conversation_outlives_the_process_with_all_that_is_in_it(tmp_path: Path) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    messages: list[Message] = [
        SystemMessage("Be brief."),
        UserMessage("Look: ü", (image,)),
        AssistantMessage(
            "Well.",
            (ToolCall("c1", "add", {"a": 2}), ToolCall("c2", "add", '{"a": 3}')),
            ProviderItems("anthropic", ({"type": "thinking", "signature": "x"},)),
        ),
        ToolMessage(
            (
                ToolResult("c1", "add", (image,), structured={"sum": [1, None]}),
                ToolResult("c2", "add", (), is_error=True, error_code="tool_failed"),
            )
        ),
        AssistantMessage("5"),
    ]
    with SqliteMessageStore(tmp_path / "chat.db") as store:
        MessageWindowMemory(store).add("a", messages)

    with SqliteMessageStore(tmp_path / "chat.db") as store:
        assert MessageWindowMemory(store).get("a") == messages


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "chat.db").write_text("This is a letter, and a long one at that." * 50)

    with pytest.raises(StorageError, match=r"chat\.db"):
        SqliteMessageStore(tmp_path / "chat.db")


def test_a_file_of_another_version_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "chat.db")
    database.execute("PRAGMA user_version = 9")
    database.close()

    with pytest.raises(StorageError, match="move the file away"):
        SqliteMessageStore(tmp_path / "chat.db")


def test_a_damaged_conversation_is_an_error_and_can_be_cleared(tmp_path: Path) -> None:
    with SqliteMessageStore(tmp_path / "chat.db") as store:
        MessageWindowMemory(store).add("a", said("one"))
    database = sqlite3.connect(tmp_path / "chat.db")
    database.execute("UPDATE conversations SET messages = '[\"{}\"]'")
    database.commit()
    database.close()

    with SqliteMessageStore(tmp_path / "chat.db") as store:
        memory = MessageWindowMemory(store)
        with pytest.raises(StorageError, match="clear it to go on"):
            memory.get("a")
        memory.clear("a")
        assert memory.get("a") == []


# The advisor


async def whole(spec: PromptSpec) -> ChatResponse:
    return await spec.call()


async def streamed(spec: PromptSpec) -> ChatResponse:
    return aggregate([chunk async for chunk in spec.stream()])


either_way = pytest.mark.parametrize("run", [whole, streamed])
every_layout = pytest.mark.parametrize(
    ("inside", "history"), [(False, True), (True, True), (True, False)], ids=["outside", "inside", "inside alone"]
)


def client(
    model: ScriptedModel, memory: MessageWindowMemory, *, inside: bool, history: bool, **more: Any
) -> ChatClient:
    order = TOOL_LOOP_ORDER + (100 if inside else -100)
    advisors = [MemoryAdvisor(memory, order=order), ToolCallingAdvisor(conversation_history=history)]
    return ChatClient(model, tools=[add, ticket], advisors=advisors, **more)


@tool(return_direct=True)
def ticket(number: int) -> str:
    return f"Ticket {number}"


@either_way
@every_layout
async def test_a_turn_is_sent_and_remembered_once_wherever_the_memory_stands(
    run: Any, inside: bool, history: bool
) -> None:
    memory = MessageWindowMemory()
    model = ScriptedModel(ADDS, says("5"), says("Yes."))
    chat = client(model, memory, inside=inside, history=history, system="Be brief.")

    await run(chat.prompt("2 + 3?").context(conversation_id="a"))
    await run(chat.prompt("Sure?").context(conversation_id="a"))

    result = model.sent[1][-1]
    turn = [UserMessage("2 + 3?"), ADDS.message, result]
    assert result.results[0].text == "5"
    assert model.sent == [
        [SystemMessage("Be brief."), UserMessage("2 + 3?")],
        [SystemMessage("Be brief."), *turn],
        [SystemMessage("Be brief."), *turn, AssistantMessage("5"), UserMessage("Sure?")],
    ]
    assert memory.get("a") == [*model.sent[2][1:], AssistantMessage("Yes.")]


@every_layout
async def test_a_turn_that_fails_leaves_nothing_behind(inside: bool, history: bool) -> None:
    memory = MessageWindowMemory()
    model = ScriptedModel(ADDS, ChatModelError("down"), says("5"))
    spec = client(model, memory, inside=inside, history=history).prompt("2 + 3?").context(conversation_id="a")

    with pytest.raises(ChatModelError):
        await spec.call()
    assert memory.get("a") == []

    await spec.call()
    assert memory.get("a") == [UserMessage("2 + 3?"), AssistantMessage("5")]


@every_layout
async def test_turns_of_one_conversation_at_the_same_time_do_not_mix(inside: bool, history: bool) -> None:
    def reply(prompt: Prompt) -> ChatResponse:
        last = prompt.messages[-1]
        if isinstance(last, ToolMessage):
            return says(last.results[0].text)
        return calls(("add", f'{{"a": {last.text}, "b": 0}}'))

    memory = MessageWindowMemory(max_messages=100)
    chat = client(ScriptedModel(reply), memory, inside=inside, history=history)
    specs = [chat.prompt(str(number)).context(conversation_id="a") for number in range(10)]

    texts = [response.text for response in await asyncio.gather(*(spec.call() for spec in specs))]

    kept = memory.get("a")
    turns = [kept[start : start + 4] for start in range(0, len(kept), 4)]
    assert texts == [str(number) for number in range(10)]
    assert sorted(turn[0].text for turn in turns) == texts
    assert all(turn[0].text == turn[2].results[0].text == turn[3].text for turn in turns)


async def test_what_a_tool_returns_directly_is_remembered_as_the_answer() -> None:
    memory = MessageWindowMemory()
    asked = calls(("ticket", '{"number": 7}'))
    chat = client(ScriptedModel(asked), memory, inside=False, history=True)

    await chat.prompt("A ticket!").context(conversation_id="a").call()

    user, call, result, answer = memory.get("a")
    assert (user, call, answer) == (UserMessage("A ticket!"), asked.message, AssistantMessage("Ticket 7"))
    assert result.results[0].text == "Ticket 7"


@either_way
async def test_inside_the_loop_a_turn_that_returns_directly_leaves_no_call_without_a_result(run: Any) -> None:
    memory = MessageWindowMemory()
    chat = client(ScriptedModel(calls(("ticket", '{"number": 7}'))), memory, inside=True, history=False)

    response = await run(chat.prompt("A ticket!").context(conversation_id="a"))

    assert response.text == "Ticket 7"
    assert memory.get("a") == []


async def test_a_memory_can_leave_out_what_tools_were_for() -> None:
    memory = MessageWindowMemory()
    advisors = [MemoryAdvisor(memory, tool_messages=False)]
    chat = ChatClient(ScriptedModel(ADDS, says("5")), tools=[add], advisors=advisors)

    await chat.prompt("2 + 3?").context(conversation_id="a").call()

    assert memory.get("a") == [UserMessage("2 + 3?"), AssistantMessage("5")]


async def test_leaving_a_stream_early_remembers_nothing_and_ends_the_models_stream() -> None:
    memory, model = MessageWindowMemory(), ScriptedModel(says("a long answer"))
    stream = client(model, memory, inside=False, history=True).prompt("x").context(conversation_id="a").stream()

    await anext(stream)
    await stream.aclose()

    assert memory.get("a") == []
    assert model.closed_streams == 1


@pytest.mark.parametrize("context", [{}, {"conversation_id": ""}, {"conversation_id": 7}])
async def test_a_memory_without_a_conversation_says_what_to_set(context: dict[str, Any]) -> None:
    chat = client(ScriptedModel(), MessageWindowMemory(), inside=False, history=True)

    with pytest.raises(BadSettingError, match="set 'conversation_id' in the request's context"):
        await chat.prompt("x").context(context).call()


async def test_a_remembered_system_message_is_sent_unless_the_request_has_one() -> None:
    memory, model = MessageWindowMemory(), ScriptedModel(says("a"), says("b"))
    memory.add("a", [SystemMessage("remembered")])
    chat = client(model, memory, inside=False, history=True)

    await chat.prompt("x").context(conversation_id="a").call()
    await chat.prompt("y").system("own").context(conversation_id="a").call()

    assert [sent[0] for sent in model.sent] == [SystemMessage("remembered"), SystemMessage("own")]
    assert sum(isinstance(message, SystemMessage) for message in model.sent[1]) == 1
