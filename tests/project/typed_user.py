"""What a user of the library writes, with the public names alone. Type checkers read it, and a test runs it.

The lines with ``# type: ignore`` are mistakes that a type checker has to find: a comment without need is an error.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true
# ruff: noqa: ARG002, T201

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch import (
    Allow,
    Budget,
    Catalog,
    Deny,
    Edit,
    Encoder,
    EvictionStrategy,
    JsonObject,
    LiveSource,
    LoadReport,
    PassThrough,
    Principal,
    Reach,
    Refusal,
    Session,
    SessionOptions,
    SessionPersistence,
    SessionStore,
    Settings,
    Source,
    StoredSession,
    Strategy,
    Tool,
    ToolCall,
    ToolCallback,
    ToolCallingManager,
    ToolCallResultConverter,
    ToolContext,
    ToolDefinition,
    ToolMetadata,
    ToolReference,
    ToolResult,
    ToolSearch,
    ToolSearchError,
    build_engine,
    tool,
)
from toolsearch.api.sessions import SearchAnswer
from toolsearch.chat import (
    Advisor,
    Chain,
    ChatChunk,
    ChatClient,
    ChatModel,
    ChatRequest,
    ChatResponse,
    Prompt,
    ScriptedModel,
    ToolSearchAdvisor,
    scripted_calls,
)
from toolsearch.client import AsyncToolSearchClient, ToolSearchClient
from toolsearch.errors import BadSettingError
from toolsearch.wire import Endpoint, WireFormat

# What a user implements


class OneDimension:
    """An `Encoder`: every text is like every other."""

    id = "one"
    dimensions = 1

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 1), dtype=np.float32)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_documents(texts)


class Letters:
    """A `LiveSource`."""

    description = "letters"

    def __init__(self) -> None:
        self._changed: Callable[[LoadReport], None] | None = None

    def load(self) -> LoadReport:
        tools = (Tool(ToolDefinition("send_mail", "Send a letter")),)
        return LoadReport(tools, (Refusal("burn_mail", self.description, "letters are not burnt"),))

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        self._changed = changed

    def close(self) -> None:
        self._changed = None


class ForgetNothing:
    """An `EvictionStrategy`."""

    def on_access(self, session_id: str) -> frozenset[str]:
        return frozenset()

    def on_removed(self, session_id: str) -> None: ...


class Kept:
    """A `SessionPersistence`."""

    def __init__(self) -> None:
        self._sessions: dict[str, StoredSession] = {}

    def load(self, session_id: str) -> StoredSession | None:
        return self._sessions.get(session_id)

    def save(self, session_id: str, text: str, *, version: int) -> int:
        self._sessions[session_id] = StoredSession(text, version + 1)
        return version + 1

    def delete(self, session_id: str) -> bool:
        return self._sessions.pop(session_id, None) is not None

    def ids(self) -> list[str]:
        return sorted(self._sessions)


class Loud:
    """An `Advisor`."""

    order = 100

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse:
        return await chain.call(request)

    async def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]:
        async for chunk in chain.stream(request):
            yield chunk


class Parrot:
    """A `ChatModel`."""

    provider = "parrot"
    endpoint = Endpoint("parrot")
    native_tool_search = False

    async def call(self, prompt: Prompt) -> ChatResponse:
        return await ScriptedModel("Hello.").call(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        async for chunk in ScriptedModel("Hello.").stream(prompt):
            yield chunk


class Plain:
    """A `ToolCallback` without async."""

    def call(self, arguments: JsonObject, context: ToolContext) -> str:
        return str(arguments)


class Exclaimed:
    """A `ToolCallResultConverter`."""

    def convert(self, value: Any, return_type: Any) -> str:
        return f"{value}!"


def only_reading(call: ToolCall, tool: Tool, context: ToolContext) -> Allow | Deny | Edit:
    if call.parsed_arguments.get("limit", 0) > 10:
        return Edit({**call.parsed_arguments, "limit": 10})
    return Allow() if tool.definition.annotations.get("readOnlyHint") else Deny("this may only read")


def unchanged(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
    return result


encoder: Encoder = OneDimension()
source: Source = Letters()
live: LiveSource = Letters()
eviction: EvictionStrategy = ForgetNothing()
persistence: SessionPersistence = Kept()
advisor: Advisor = Loud()
model: ChatModel = Parrot()
callback: ToolCallback = Plain()
converter: ToolCallResultConverter = Exclaimed()
metadata = [ToolMetadata(result_converter=each) for each in (converter, str)]
hooks = ToolCallingManager(before=[only_reading], after=[unchanged])


# What a user calls


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def searched(strategy: Strategy = "keyword") -> list[ToolReference]:
    catalog = Catalog([add])
    catalog.load(source)
    sessions = SessionStore(eviction, persistence)
    options = SessionOptions(budget=Budget(max_tools=5), pass_through=PassThrough(max_tools=0))
    with ToolSearch(catalog, strategy=strategy, encoder=encoder, sessions=sessions, options=options) as engine:
        explained = engine.explain("add numbers", "add")
        session: Session = engine.session("a", principal=Principal("ada", Reach.parse(["add"])))
        found: list[ToolReference] = session.search("add two numbers")
        savings = session.savings()
        refused: list[Refusal] = catalog.refused
        print(explained.outcome, savings.requests, [refusal.name for refusal in refused])
    return found


def called(wire_format: WireFormat = "openai") -> list[dict[str, Any]]:
    engine = ToolSearch([add], manager=ToolCallingManager(after=[unchanged]))
    session = engine.session("a")
    tools: list[dict[str, Any]] = session.tools(wire_format)
    result: ToolResult = session.call_sync("add", {"a": 1, "b": 2})
    answers: list[dict[str, Any]] = session.execute_sync({"name": "add", "arguments": {"a": 1, "b": 2}})
    print(len(tools), result.text, answers)
    return answers


def chatted(environment: Mapping[str, str]) -> str:
    engine = build_engine(Settings.from_environment(environment), Catalog([add]))
    script = ScriptedModel(scripted_calls(("add", {"a": 1, "b": 2})), "3.")
    client = ChatClient(script, advisors=[advisor, ToolSearchAdvisor(engine)])
    response: ChatResponse = client.prompt("1 + 2?").context(conversation_id="a").call_sync()
    return response.text


def asked(client: ToolSearchClient) -> list[str]:
    answer: SearchAnswer = client.search("add numbers", catalog="default", limit=3)
    names: list[str] = [entry.name for entry in client.tools("default", source="list")]
    return [tool.name for each in answer.answers for tool in each.tools] + names


async def awaited(client: AsyncToolSearchClient) -> list[str]:
    answer: SearchAnswer = await client.search("add numbers", catalog="default", limit=3)
    names: list[str] = [entry.name async for entry in client.tools("default", source="list")]
    return [tool.name for each in answer.answers for tool in each.tools] + names


# What a type checker has to find


def mistaken() -> None:
    ToolSearch([add], strategy="lexical")  # type: ignore[arg-type]
    ToolSearch([add]).search("add", strategy="lexical")  # type: ignore[arg-type]
    ToolSearch([add]).session("a").tools("open-ai")  # type: ignore[arg-type]
    ToolSearch.open("index", stratgy="keyword")  # type: ignore[call-arg]
    Catalog.from_mcp("mcp.json", timeout=3)  # type: ignore[call-arg]
    ToolSearch([add], encoder=Letters())  # type: ignore[arg-type]
    with ToolSearchClient("http://127.0.0.1:8080", "ts_k") as client:
        client.search("add", strategy="lexical")  # type: ignore[arg-type]
        client.search("add", limt=3)  # type: ignore[call-arg]
    from toolsearch import Savigns  # type: ignore[attr-defined]  # noqa: F401


def main() -> None:
    print([reference.name for reference in searched()], called(), chatted({}))
    try:
        Settings.from_environment({"TOOLSEARCH_SEARCH__LIMITS": "3"})
    except BadSettingError as error:
        caught: ToolSearchError = error
        print(caught.code)


if __name__ == "__main__":
    main()
