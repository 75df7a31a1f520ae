"""What does the loop cost? CPU time of a round and of a tool call where the model answers at once, beside other loops'.

    python -m benchmarks.overhead [--times 200] [--json FILE]

The same conversation for each: a model that calls ``add(a, b)`` so many times in so many rounds and then answers, in
the same process, one after the other in turns. What is not installed is left out with a message. CPU time does not
depend on what else the machine does; the scripted model's own share, a few microseconds, is in it.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.chat.advisor import CONVERSATION_ID, Advisor, ChatRequest, chain_of
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.sessions.options import SessionOptions
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import AssistantMessage, UserMessage

_MANY = 9  # rounds, or calls in one round, against one of them
_WARM_UPS = 5
_ENDPOINT = Endpoint("scripted")

Conversation = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Script:
    """Rounds of *calls* calls of ``add`` each, before the answer."""

    rounds: int
    calls: int = 1


_BARE, _SHORT, _LONG, _WIDE = Script(0), Script(1), Script(_MANY), Script(1, _MANY)


@dataclass(frozen=True, slots=True)
class Figure:
    """CPU microseconds in *loop*; medians over *times* conversations.

    answer  a conversation without a call
    round   one more round with one call: asking the model, calling, and taking in the result
    call    one more call in the same round
    """

    loop: str
    answer_us: float
    round_us: float
    call_us: float
    times: int


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def toolsearch_loop(script: Script) -> Conversation:
    """The plain tool loop of `ToolCallingAdvisor`."""

    return _toolsearch(script, ToolCallingAdvisor(_free_manager()))


def toolsearch_search_loop(script: Script) -> Conversation:
    """The same with a search tool in front: `ToolSearchAdvisor`, its session kept from conversation to conversation."""

    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    return _toolsearch(script, ToolSearchAdvisor(options=options, pins=("add",), manager=_free_manager()))


def pydantic_ai_loop(script: Script) -> Conversation:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import RequestUsage

    told = RequestUsage(input_tokens=1, output_tokens=1)  # else its scripted model guesses, which a real one need not

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:  # noqa: ARG001
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done >= script.rounds:
            return ModelResponse(parts=[TextPart("done")], usage=told)
        asked = [ToolCallPart("add", call, tool_call_id=key) for key, call in _calls(script, done)]
        return ModelResponse(parts=asked, usage=told)

    agent = Agent(FunctionModel(answer), tools=[add])

    async def converse() -> str:
        return str((await agent.run("Add them up.")).output)

    return converse


def langchain_loop(script: Script) -> Conversation:
    from langchain.agents import create_agent
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import StructuredTool

    class Scripted(BaseChatModel):  # type: ignore[misc,unused-ignore]  # Any, where it is not installed
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ARG002
            return self

        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            done = sum(isinstance(message, AIMessage) for message in messages)
            calls = [{"name": "add", "args": call, "id": key} for key, call in _calls(script, done)]
            message = AIMessage("", tool_calls=calls) if done < script.rounds else AIMessage("done")
            return ChatResult(generations=[ChatGeneration(message=message)])

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            return self._generate(messages)

    agent = create_agent(Scripted(), tools=[StructuredTool.from_function(coroutine=add)])

    async def converse() -> str:
        state = await agent.ainvoke({"messages": [("user", "Add them up.")]}, {"recursion_limit": 10 * _MANY})
        return str(state["messages"][-1].content)

    return converse


LOOPS: Mapping[str, tuple[str, Callable[[Script], Conversation]]] = {
    "toolsearch": ("toolsearch", toolsearch_loop),
    "toolsearch, with search": ("toolsearch", toolsearch_search_loop),
    "pydantic-ai": ("pydantic_ai", pydantic_ai_loop),
    "LangChain": ("langchain", langchain_loop),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=200, help="conversations of each kind")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    loops: dict[str, Callable[[Script], Conversation]] = {}
    for name, (module, loop) in LOOPS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name} is left out: it is not installed; pip install -e '.[bench]' does", file=sys.stderr)
        else:
            loops[name] = loop
    figures = asyncio.run(measure(loops, times=options.times))
    _print_table(figures)
    if options.json:
        write_figures(options.json, "overhead", [asdict(figure) for figure in figures])
    return 0


async def measure(loops: Mapping[str, Callable[[Script], Conversation]], *, times: int) -> list[Figure]:
    """Hold each conversation *times* times, every loop in turn, so that none has the machine at a better moment."""
    scripts = (_BARE, _SHORT, _LONG, _WIDE)
    conversations = {(name, script): loop(script) for name, loop in loops.items() for script in scripts}
    taken_us: dict[tuple[str, Script], list[float]] = {key: [] for key in conversations}
    for number in range(_WARM_UPS + times):
        for key, converse in conversations.items():
            started_ns = time.process_time_ns()
            answer = await converse()
            if number >= _WARM_UPS:
                taken_us[key].append((time.process_time_ns() - started_ns) / 1e3)
            assert answer == "done", (key, answer)
    medians = {key: statistics.median(each) for key, each in taken_us.items()}
    return [
        Figure(
            name,
            answer_us=round(medians[name, _BARE], 1),
            round_us=round((medians[name, _LONG] - medians[name, _SHORT]) / (_MANY - 1), 1),
            call_us=round((medians[name, _WIDE] - medians[name, _SHORT]) / (_MANY - 1), 1),
            times=times,
        )
        for name in loops
    ]


def _calls(script: Script, done: int) -> list[tuple[str, dict[str, int]]]:
    """The ids and arguments of the calls of a round, after *done* rounds; no two are alike."""
    return [(f"c{done}_{number}", {"a": done, "b": number}) for number in range(script.calls)]


def _toolsearch(script: Script, advisor: Advisor) -> Conversation:

    options = ChatOptions(tools=(tool_from_function(add),))
    request = ChatRequest(Prompt((UserMessage("Add them up."),), options), {CONVERSATION_ID: "c"})
    chain = chain_of([advisor], _ScriptedModel(script))

    async def converse() -> str:
        return (await chain.call(request)).text

    return converse


def _free_manager() -> ToolCallingManager:
    """The guards stay, their limits are lifted: a benchmark calls more often than anybody should."""

    return ToolCallingManager(limits=CallLimits(per_tool=1_000, total=1_000))


@dataclass(frozen=True, slots=True)
class _ScriptedModel:
    """A `ChatModel` that answers at once."""

    script: Script
    provider: str = "scripted"
    endpoint: Endpoint = _ENDPOINT
    native_tool_search: bool = False

    async def call(self, prompt: Prompt) -> ChatResponse:

        done = sum(isinstance(message, AssistantMessage) for message in prompt.messages)
        if done >= self.script.rounds:
            return ChatResponse(AssistantMessage("done"))
        calls = tuple(ToolCall(key, "add", arguments) for key, arguments in _calls(self.script, done))
        return ChatResponse(AssistantMessage("", calls), "tool_calls")

    def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        raise NotImplementedError


def _print_table(figures: Sequence[Figure]) -> None:
    rows = [
        (each.loop, *(f"{us:,.0f}" for us in (each.answer_us, each.round_us, each.call_us)), str(each.times))
        for each in figures
    ]
    print_table(("CPU time in us", "answer", "a round", "a call", "times"), rows)


if __name__ == "__main__":
    sys.exit(main())
