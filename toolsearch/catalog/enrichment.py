"""Lets a language model write the requests of users into a file, a few calls for many tools.

The plan tells the cost first. The calls then stay within a budget.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolsearch.catalog.enrichment_prompt import (
    SCHEMA,
    SYSTEM,
    Batch,
    EnrichmentProblem,
    ProblemCode,
    question_about,
    read_answer,
)
from toolsearch.catalog.request_packs import PackedTool
from toolsearch.catalog.request_writer import CALLS_AT_ONCE, TOOLS_PER_CALL, RequestWriter
from toolsearch.catalog.requests_file import bad_requests, packed_tool, read_requests, write_requests
from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.tokens import TokenCounter, count_json, default_counter
from toolsearch.tools.definition import FOUND_KINDS, Tool, ToolDefinition
from toolsearch.wire.answers import Usage
from toolsearch_indexes.analysis import terms

_MOST_ANSWER_TOKENS: Final = 8_000  # tokens of one answer; a model that reasons needs more than the answer itself


class EnrichmentBudget:
    """The budget of a run, and what was spent.

    Under a bound of tokens, calls are made one after the other, because the tokens of two simultaneous calls are not
    known in advance.
    """

    def __init__(self, max_calls: int | None, max_tokens: int | None) -> None:
        for name, value in (("max_calls", max_calls), ("max_tokens", max_tokens)):
            if value is not None and value < 0:
                raise BadSettingError(f"{name} must be at least 0, not {value}")
        self.calls = 0  # calls that were begun
        self.usage = Usage()
        self._max_calls = max_calls
        self._max_tokens = max_tokens

    @property
    def is_of_tokens(self) -> bool:
        return self._max_tokens is not None

    def begin(self, sent: int, expected: int) -> int | None:
        """Count a call of *sent* tokens, and return the longest answer in tokens; None if the call may not be made."""
        bound = max(_MOST_ANSWER_TOKENS, 2 * expected)
        if self._max_tokens is not None:
            bound = min(bound, self._max_tokens - self.usage.input_tokens - self.usage.output_tokens - sent)
        if bound < expected or (self._max_calls is not None and self.calls >= self._max_calls):
            return None
        self.calls += 1
        return bound

    def spend(self, usage: Usage) -> None:
        self.usage += usage


def found_definitions(entries: Iterable[Tool]) -> list[ToolDefinition]:
    """The definitions of tools and skills. Requests are written for these, since searches find them by default."""
    return [each.definition for each in entries if each.definition.kind in FOUND_KINDS]


_MOST_NEIGHBOURS = 20
_MOST_TOOLS_OF_A_WORD = 100  # a word that more tools of a server share hardly tells them apart


def batches_of(
    wanted: Iterable[ToolDefinition], everything: Iterable[ToolDefinition], *, size: int = TOOLS_PER_CALL
) -> list[Batch]:
    """Return *wanted* by *size*, by server and name, so that similar tools are mostly in one call.

    Each batch has at most twenty neighbours: the tools of its servers in *everything* that share most words with one of
    its tools; ties go by name.
    """
    ordered = sorted(wanted, key=lambda each: (each.server, each.name))
    words = _Words(everything)
    parts = [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]
    return [Batch(part, words.neighbours(part)) for part in parts]


class _Words:
    """The words of the tools, by server."""

    def __init__(self, everything: Iterable[ToolDefinition]) -> None:
        self._tools: defaultdict[tuple[str, str], list[ToolDefinition]] = defaultdict(list)  # (server, word) -> tools
        for each in everything:
            for word in _words(each):
                self._tools[each.server, word].append(each)

    def neighbours(self, part: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        found: dict[str, ToolDefinition] = {}
        likeness: Counter[str] = Counter()
        for tool in part:
            sharing = [self._tools[tool.server, word] for word in _words(tool)]
            others = [other for each in sharing if len(each) <= _MOST_TOOLS_OF_A_WORD for other in each]
            found |= {other.name: other for other in others}
            likeness |= Counter(other.name for other in others)  # keeps the higher count of the two
        for tool in part:
            found.pop(tool.name, None)
        nearest = sorted(found, key=lambda name: (-likeness[name], name))
        return tuple(found[name] for name in nearest[:_MOST_NEIGHBOURS])


def _words(definition: ToolDefinition) -> frozenset[str]:
    return frozenset(terms(f"{definition.local_name} {definition.title} {definition.description}"))


ANSWER_TOKENS_PER_TOOL: Final = 67  # mean of the 2,285 tools whose requests we ship, written as the schema requires
_MOST_FAILURES = 3  # after so many failed calls in a row the next would fail as well
_PER_MILLION = 1_000_000
OnProgress = Callable[[int, int], None]  # takes the number of tools asked for, and of all tools to ask for


@dataclass(frozen=True, slots=True)
class EnrichmentPlan:
    """The estimated cost of writing the requests, before the model is asked.

    tools          tools without requests in the file, or with requests for another definition
    known          tools with requests in the file
    calls          calls of the model
    input_tokens   input of all calls, as our tokenizer counts it
    output_tokens  output of all calls, estimated from the requests that we ship; a model's reasoning is extra
    """

    tools: int
    known: int
    calls: int
    input_tokens: int
    output_tokens: int

    def cost(self, *, input_price: float, output_price: float) -> float:
        """The cost at these prices for a million tokens."""
        return _cost(self.input_tokens, self.output_tokens, input_price, output_price)


@dataclass(frozen=True, slots=True)
class EnrichmentReport:
    """The outcome of a run.

    written   names of the tools that have requests now
    problems  faults in the answers; good requests were kept anyway
    calls     calls of the model that were made
    usage     tokens by the provider's count, or by ours if it gives none
    left      tools that still need requests; another run asks for them
    """

    written: tuple[str, ...]
    problems: tuple[EnrichmentProblem, ...]
    calls: int
    usage: Usage
    left: int

    def cost(self, *, input_price: float, output_price: float) -> float:
        """The cost at these prices for a million tokens."""
        return _cost(self.usage.input_tokens, self.usage.output_tokens, input_price, output_price)


@dataclass
class Enrichment:
    """The work on *file* for *definitions*; with *only*, the model is asked only for the tools of these names.

    The file is the memory: the model is not asked again for a tool with an unchanged definition, nor for one whose line
    names no model, because a person wrote that line. Raises SourceError if the file is damaged.
    """

    definitions: Iterable[ToolDefinition]
    file: Path
    only: Collection[str] | None = None
    tools_per_call: int = TOOLS_PER_CALL
    counter: TokenCounter = field(default_factory=default_counter)

    def __post_init__(self) -> None:
        if self.tools_per_call < 1:
            raise BadSettingError(f"tools_per_call must be at least 1, not {self.tools_per_call}")
        everything = list(self.definitions)
        asked = [each for each in everything if self.only is None or each.name in self.only]
        kept = read_requests(self.file) if self.file.exists() else ()
        self._kept = {(tool.server, tool.name): tool for tool in kept}
        wanted = [each for each in asked if not self._is_known(each)]
        self.batches = batches_of(wanted, everything, size=self.tools_per_call)
        self.plan = EnrichmentPlan(
            tools=len(wanted),
            known=len(asked) - len(wanted),
            calls=len(self.batches),
            input_tokens=sum(map(self.input_tokens, self.batches)),
            output_tokens=ANSWER_TOKENS_PER_TOOL * len(wanted),
        )

    async def run(
        self,
        writer: RequestWriter,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        at_once: int = CALLS_AT_ONCE,
        progress: OnProgress | None = None,
    ) -> EnrichmentReport:
        """Ask *writer*, and write the file after each call, so that an interruption loses nothing.

        max_calls   calls that may be made
        max_tokens  input and output of all calls together: no call is made whose input and expected answer do not fit
                    any more, and none may answer with more than what is left
        at_once     calls that may wait for their answers at the same time; one if *max_tokens* is given
        Raises SourceError, before anything is asked, if the file cannot be written, and OSError if writing fails
        later.
        """
        if at_once < 1:
            raise BadSettingError(f"at_once must be at least 1, not {at_once}")
        folder = self.file.resolve().parent
        if not os.access(folder, os.W_OK):  # checked before anything is paid for
            raise bad_requests(f"{self.file} cannot be written: there is no folder {folder}, or it is read-only")
        calls = _Calls(self, writer, EnrichmentBudget(max_calls, max_tokens), progress)
        await calls.make(at_once)
        return calls.report()

    def keep(self, batch: Batch, requests: dict[str, tuple[str, ...]], model: str) -> None:
        """Write the requests that *model* wrote for *batch* into the file."""
        for each in batch.tools:
            if each.name in requests:
                tool: PackedTool = packed_tool(each, requests[each.name], model=model)
                self._kept[tool.server, tool.name] = tool
        if requests:
            write_requests(self.file, self._kept.values())

    def input_tokens(self, batch: Batch) -> int:
        count = self.counter.count
        return count(SYSTEM) + count_json(SCHEMA, self.counter) + count(question_about(batch))

    def _is_known(self, definition: ToolDefinition) -> bool:
        bound = packed_tool(definition, ())
        kept = self._kept.get((bound.server, bound.name))
        return kept is not None and (kept.definition == bound.definition or not kept.model)


class _Calls:
    """The calls of one run."""

    def __init__(
        self, work: Enrichment, writer: RequestWriter, budget: EnrichmentBudget, progress: OnProgress | None
    ) -> None:
        self._work = work
        self._writer = writer
        self._budget = budget
        self._progress = progress
        self._next = iter(work.batches)
        self._done = 0  # tools that were asked for
        self._failures = 0  # failed calls in a row
        self._written: set[str] = set()
        self._problems: list[EnrichmentProblem] = []

    async def make(self, at_once: int) -> None:
        self._tell()
        callers = [
            asyncio.ensure_future(self._call_in_turn()) for _ in range(1 if self._budget.is_of_tokens else at_once)
        ]
        try:
            await asyncio.gather(*callers)
        finally:
            for caller in callers:
                caller.cancel()
        if self._failures >= _MOST_FAILURES:
            self._fail(self._next, "not_asked", "the calls before it failed")

    def report(self) -> EnrichmentReport:
        tools = [each.name for batch in self._work.batches for each in batch.tools]
        order = {name: place for place, name in enumerate(tools)}
        return EnrichmentReport(
            tuple(name for name in tools if name in self._written),
            tuple(sorted(self._problems, key=lambda problem: order.get(problem.tool, len(order)))),
            self._budget.calls,
            self._budget.usage,
            len(tools) - len(self._written),
        )

    async def _call_in_turn(self) -> None:
        for batch in self._next:
            if self._failures >= _MOST_FAILURES:
                self._fail([batch], "not_asked", "the calls before it failed")
                return
            sent = self._work.input_tokens(batch)
            bound = self._budget.begin(sent, ANSWER_TOKENS_PER_TOOL * len(batch.tools))
            if bound is None:
                return
            await self._call(batch, sent, bound)
            self._done += len(batch.tools)
            self._tell()

    async def _call(self, batch: Batch, sent: int, bound: int) -> None:
        work = self._work
        try:
            response = await self._writer.answer(question_about(batch), system=SYSTEM, schema=SCHEMA, max_tokens=bound)
        except ChatModelError as error:
            self._budget.spend(Usage(sent, 0))  # the provider may have charged for the call
            self._failures += 1
            self._fail([batch], "not_answered", str(error))
            return
        self._failures = 0
        is_counted = response.usage.input_tokens or response.usage.output_tokens
        self._budget.spend(response.usage if is_counted else Usage(sent, work.counter.count(response.text)))
        read = read_answer(batch, response)
        self._problems += read.problems
        self._written |= read.requests.keys()
        work.keep(batch, read.requests, self._writer.model_name)

    def _fail(self, batches: Iterable[Batch], code: ProblemCode, reason: str) -> None:
        self._problems += [EnrichmentProblem(code, each.name, reason) for batch in batches for each in batch.tools]

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._work.plan.tools)


def _cost(input_tokens: int, output_tokens: int, input_price: float, output_price: float) -> float:
    return (input_tokens * input_price + output_tokens * output_price) / _PER_MILLION
