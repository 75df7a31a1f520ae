"""Writes the requests of a catalog's tools into a file: what it will cost, and then call by call within a budget."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolsearch.catalog.enrichment.answers import EnrichmentProblem, read_answer
from toolsearch.catalog.enrichment.batches import batches_of
from toolsearch.catalog.enrichment.prompt import SCHEMA, SYSTEM, Batch, question_about
from toolsearch.catalog.enrichment.writer import TOOLS_PER_CALL, RequestWriter
from toolsearch.catalog.request_packs import PackedTool
from toolsearch.catalog.requests_file import packed_tool, read_requests, write_requests
from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.tokens import TokenCounter, count_json, default_counter
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.answers import Usage

logger = logging.getLogger(__name__)

ANSWER_TOKENS_PER_TOOL: Final = 67  # the mean of the 2,285 tools whose requests ship, written as the schema has them

_MOST_ANSWER_TOKENS = 8_000  # of one call: a model that reasons needs more than the answer has
_MOST_FAILURES = 3  # calls in a row that could not be made: the next one would fail, too
_PER_MILLION = 1_000_000

OnProgress = Callable[[int, int], None]  # tools that were asked for, and those that are to be asked for


@dataclass(frozen=True, slots=True)
class EnrichmentPlan:
    """What writing the requests takes, before anything is asked.

    tools          for which the file has no requests yet, or those of another definition
    known          for which it has some
    calls          of the model
    input_tokens   of all calls, as our tokenizer counts them
    output_tokens  of all answers, estimated by the length of requests that ship; what a model reasons comes on top
    """

    tools: int
    known: int
    calls: int
    input_tokens: int
    output_tokens: int

    def cost(self, *, input_price: float, output_price: float) -> float:
        """By prices for a million tokens."""
        return _cost(self.input_tokens, self.output_tokens, input_price, output_price)


@dataclass(frozen=True, slots=True)
class EnrichmentReport:
    """What was written, and what was not.

    written   names of the tools that have requests now
    problems  what went wrong; what is good was kept all the same
    calls     of the model that were made
    usage     tokens by the provider's count, and by ours where it gives none
    left      tools that still need requests: run it again
    """

    written: tuple[str, ...]
    problems: tuple[EnrichmentProblem, ...]
    calls: int
    usage: Usage
    left: int

    def cost(self, *, input_price: float, output_price: float) -> float:
        """By prices for a million tokens."""
        return _cost(self.usage.input_tokens, self.usage.output_tokens, input_price, output_price)


@dataclass
class Enrichment:
    """The work on *file* for *definitions*, of which only those of the names *only* are asked for, if given.

    The file is what is remembered: a tool whose definition has not changed since is not asked for again, nor is a line
    that names no model, since a person wrote it. Raises RequestsFileError if the file is damaged.
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
        self._batches = batches_of(wanted, everything, size=self.tools_per_call)
        self.plan = EnrichmentPlan(
            tools=len(wanted),
            known=len(asked) - len(wanted),
            calls=len(self._batches),
            input_tokens=sum(map(self._input_tokens, self._batches)),
            output_tokens=ANSWER_TOKENS_PER_TOOL * len(wanted),
        )

    async def run(
        self,
        writer: RequestWriter,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        progress: OnProgress | None = None,
    ) -> EnrichmentReport:
        """Ask *writer* call by call, and write the file after each, so that nothing is lost if this is interrupted.

        max_calls   calls that may be made
        max_tokens  input and output of all calls together: no call is made whose input and expected answer do not fit
                    any more, and none may answer with more than what is left
        Raises OSError if the file cannot be written.
        """
        budget = _Budget(max_calls, max_tokens)
        written: list[str] = []
        problems: list[EnrichmentProblem] = []
        failures = 0
        for done, batch in enumerate(self._batches):
            if progress is not None:
                progress(done * self.tools_per_call, self.plan.tools)
            sent = self._input_tokens(batch)
            bound = budget.answer_bound(sent, ANSWER_TOKENS_PER_TOOL * len(batch.tools))
            if bound is None:
                break
            try:
                response = await writer.answer(question_about(batch), system=SYSTEM, schema=SCHEMA, max_tokens=bound)
            except ChatModelError as error:
                budget.spend(Usage(sent, 0))  # whether it was charged is not known
                problems += [EnrichmentProblem("not_answered", each.name, str(error)) for each in batch.tools]
                failures += 1
                if failures == _MOST_FAILURES:
                    rest = [each.name for later in self._batches[done + 1 :] for each in later.tools]
                    problems += [EnrichmentProblem("not_asked", name, "the calls before it failed") for name in rest]
                    break
                continue
            failures = 0
            counted = response.usage.input_tokens or response.usage.output_tokens
            budget.spend(response.usage if counted else Usage(sent, self.counter.count(response.text)))
            read = read_answer(batch, response)
            problems += read.problems
            self._keep(batch, read.requests, writer.model_name)
            written += read.requests
        if progress is not None:
            progress(self.plan.tools, self.plan.tools)
        return EnrichmentReport(
            tuple(written), tuple(problems), budget.calls, budget.usage, self.plan.tools - len(written)
        )

    def _is_known(self, definition: ToolDefinition) -> bool:
        bound = packed_tool(definition, ())
        kept = self._kept.get((bound.server, bound.name))
        return kept is not None and (kept.definition == bound.definition or not kept.model)

    def _keep(self, batch: Batch, requests: dict[str, tuple[str, ...]], model: str) -> None:
        for each in batch.tools:
            if each.name in requests:
                tool: PackedTool = packed_tool(each, requests[each.name], model=model)
                self._kept[tool.server, tool.name] = tool
        if requests:
            write_requests(self.file, self._kept.values())

    def _input_tokens(self, batch: Batch) -> int:
        count = self.counter.count
        return count(SYSTEM) + count_json(SCHEMA, self.counter) + count(question_about(batch))


class _Budget:
    """What may be spent, and what was."""

    def __init__(self, max_calls: int | None, max_tokens: int | None) -> None:
        for name, value in (("max_calls", max_calls), ("max_tokens", max_tokens)):
            if value is not None and value < 0:
                raise BadSettingError(f"{name} must be at least 0, not {value}")
        self.calls = 0
        self.usage = Usage()
        self._max_calls = max_calls
        self._max_tokens = max_tokens

    def answer_bound(self, sent: int, expected: int) -> int | None:
        """How long the answer to *sent* tokens may be; None if the call may not be made."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return None
        if self._max_tokens is None:
            return max(_MOST_ANSWER_TOKENS, 2 * expected)
        left = self._max_tokens - self.usage.input_tokens - self.usage.output_tokens - sent
        return min(left, max(_MOST_ANSWER_TOKENS, 2 * expected)) if left >= expected else None

    def spend(self, usage: Usage) -> None:
        self.calls += 1
        self.usage += usage


def _cost(input_tokens: int, output_tokens: int, input_price: float, output_price: float) -> float:
    return (input_tokens * input_price + output_tokens * output_price) / _PER_MILLION
