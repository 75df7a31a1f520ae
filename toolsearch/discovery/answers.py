"""Writes the answer to a call of the search tool, for every face."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolsearch.discovery.call_tools import call_tool_for, reading_call_tool
from toolsearch.discovery.exposure import Exposure, ExposureKind
from toolsearch.discovery.shown import Fit
from toolsearch.documents.json_values import as_object, as_texts
from toolsearch.errors import shown_name
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import FOUND_KINDS, Tool, ToolDefinition, ToolReference
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import READ_SKILL
from toolsearch.tools.summaries import one_line
from toolsearch.wire.mcp.definitions import fields_for_calling
from toolsearch.wire.native_search import loaded_text
from toolsearch.wire.sendable_schema import sendable_schema
from toolsearch_indexes.queries import Words, read_form

_MOST_PARAMETERS = 8
_NAME_WIDTH = 40  # characters of a name


def signature_of(definition: ToolDefinition) -> str:
    """The name of the tool and of its parameters, as models are sent them: required ones first, marked with ``*``.

    At most eight parameters are named; the others are counted.
    """
    names, required = _parameters(sendable_schema(definition.input_schema).schema)
    ordered = [*(f"{_short(name)}*" for name in required), *(_short(name) for name in names if name not in required)]
    shown = ordered[:_MOST_PARAMETERS]
    more = [f"+{len(ordered) - len(shown)} more"] if len(ordered) > len(shown) else []
    return f"{definition.name}({', '.join([*shown, *more])})"


def _parameters(schema: JsonObject) -> tuple[list[str], list[str]]:
    """The names of the properties, and the names of the required ones."""
    names, required = as_object(schema.get("properties")) or {}, set(as_texts(schema.get("required")))
    return list(names), [name for name in names if name in required]


def _short(name: str) -> str:
    return one_line(name, _NAME_WIDTH)


ANSWER_TOKENS: Final = 800
_SUMMARY_WIDTHS = (240, 160, 100, 60, 30, 0)  # characters, tried in turn until an answer fits
_RELATED_WIDTH = 80  # characters of the summary of a tool that is only related
_QUERY_WIDTH = 60
_MOST_LEFT = 20  # names shown of tools that have left the list
_FOR_DEFINITIONS = 0.75  # share of an answer's tokens for definitions; the rest is for tools that are only named
AnswerFinding: TypeAlias = Literal["fits", "weak", "again", "nothing"]

_REMARKS: Mapping[AnswerFinding, str] = {
    "fits": "",
    "weak": "probably none of these fits",
    "again": "none fits this either",
    "nothing": "no tool found",
}

_WHERE = "Where nothing fits, "
_UNLESS = " If a named tool does it after all, load that tool by select:NAME."
_DO_WITHOUT = (
    "do without, and tell the user that there is no tool for it.{} Search again only with a name that the tool itself "
    "might have."
)

_NOT_RUNNABLE = "not runnable here"

_IN_LIST = (
    "Tools marked 'loaded' are in your tool list: call them by name. To load another, send the query select:NAME."
)
_BY_CALL_TOOL = (
    "To run a tool, call its 'callWith' with the tool's 'name', and its parameters inside 'arguments'. "
    "For the definition of a tool that is only named, send the query select:NAME."
)
_READ_HINT = "A skill is instructions for a task: read it with {}, by its 'name', before you begin the task."
_GET_HINT = "Get a prompt or a resource with {}: give its 'name', and its arguments inside 'arguments'."
CALL_HINTS: Final[Mapping[ExposureKind, str]] = {
    "whole": "They are in your tool list; call them by name.",
    "append": _IN_LIST,
    "fixed": _BY_CALL_TOOL,
    "deferred": _IN_LIST,
    "messages": _IN_LIST,
}
"""Tells the model, in the answer to a search, how to call the found tools."""


@dataclass(frozen=True, slots=True)
class AnsweredTool:
    """One tool in an answer, or an entry of another kind, which is never loaded.

    *is_loaded* says that the model is shown its definition from now on. *copies* are the names of tools that say the
    same and fit equally well.
    """

    reference: ToolReference
    fit: Fit
    is_loaded: bool
    copies: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.reference.name

    @property
    def is_tool(self) -> bool:
        return self.reference.kind == "tool"

    @property
    def names(self) -> list[str]:
        """Its own name first, then those of its copies."""
        return [self.name, *self.copies]


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """The tools and other entries that one query has found, best first of each kind.

    fitting   number of all tools that fit, which may exceed *tools*. *is_more* says that there are even more
    too_long  names of found tools that are too long to be shown
    missing   selected names that do not exist
    near      name in *missing* -> names that may have been meant
    error     why there is no answer, written for the model
    earlier   an earlier search of the session for the same, in vain; "" for none
    """

    query: str
    tools: Sequence[AnsweredTool] = ()
    finding: AnswerFinding = "fits"
    fitting: int = 0
    is_more: bool = False
    too_long: Sequence[str] = ()
    missing: Sequence[str] = ()
    error: str = ""
    near: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    earlier: str = ""

    @property
    def loaded(self) -> list[str]:
        return [tool.name for tool in self.tools if tool.is_loaded]

    @property
    def is_in_vain(self) -> bool:
        """Whether words have found nothing that fits. Who sends names or a pattern looks around."""
        is_told = bool(self.missing or self.error)
        return self.finding != "fits" and not is_told and isinstance(read_form(self.query), Words)

    @property
    def remark(self) -> str:
        """The remark about the answer as a whole."""
        shown = sum(len(tool.names) for tool in self.tools if tool.is_tool and tool.fit != "related")
        if self.error:
            return self.error
        if self.finding == "fits" and self.fitting > shown:
            return f"{shown} of {self.fitting}{' or more' if self.is_more else ''} tools that fit"
        if self.finding == "again":
            return f'searched in vain before: "{one_line(self.earlier, _QUERY_WIDTH)}"; {_REMARKS["again"]}'
        return _REMARKS[self.finding]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """*texts* are for the model; the others say the same for programs.

    texts        one text; if the provider itself shows loaded tools, a first text for these and a second for the rest
    definitions  definitions that the text holds, as the model reads them
    loaded       name -> the text about it, for tools that are loaded or whose definitions are given
    also_found   name -> the text about it, for the other tools in the text
    remarks      the rest of the text, but for *call_hint*
    found        the names of all tools that the text names
    """

    texts: list[str]
    call_hint: str
    loaded: dict[str, str]
    also_found: list[str]
    remarks: str
    definitions: list[dict[str, Any]]
    found: list[str]

    @property
    def text(self) -> str:
        return _lines(*self.texts)


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes answers of at most *answer_tokens* tokens, all queries of a call together.

    shown       returns the tool or other entry of a name as models see it, None if they do not see it
    is_split    whether there is a call tool for each safety class, or one for all
    read_skill  the name of the tool that reads a skill
    """

    shown: Callable[[str], Tool | None]
    answer_tokens: int
    counter: TokenCounter
    is_split: bool = False
    read_skill: str = READ_SKILL

    def write(
        self,
        exposure: Exposure,
        answers: Sequence[AnsweredQuery],
        *,
        listed_before: Collection[str] = (),
        unlisted: Collection[str] = (),
        servers: Sequence[str] = (),
        note: str = "",
        prefix: str = "",
    ) -> SearchAnswer:
        """Answer a call. *listed_before* names the tools that the model's list has anyway. *unlisted* names the loaded
        tools that it will not have, so that their definitions are given. *servers* names the servers, in forms of
        decreasing length. *prefix* precedes the name of a call tool when the model calls it.

        To fit, summaries are cut, then left out, then shorter forms of *servers* are taken, and then the last tools of
        each query are only counted. The first definition and the remarks about a whole query are given even if they
        alone exceed the cap.
        """
        has_all = exposure.answers == "definitions"
        loaded = [
            [tool for tool in answer.tools if tool.is_loaded and (has_all or tool.name in unlisted)]
            for answer in answers
        ]
        definitions = self._definitions(loaded, prefix)
        read_with, get_with = f"{prefix}{self.read_skill}", f"{prefix}{reading_call_tool(is_split=self.is_split)}"
        page = _Page(
            exposure, answers, listed_before, unlisted, definitions, self.shown, servers, note, read_with, get_with
        )
        *larger, least = page.sizes()
        fitting = (size for size in larger if self.counter.count(_lines(*page.texts(size))) <= self.answer_tokens)
        return page.answer(next(fitting, least))

    def _definitions(self, loaded: Sequence[Sequence[AnsweredTool]], prefix: str) -> dict[str, dict[str, Any]]:
        """The entries needed to call the tools *loaded* by each query, by name: the best of each query first, as many
        as fit.
        """
        room = self.answer_tokens * _FOR_DEFINITIONS
        given: dict[str, dict[str, Any]] = {}
        for found in _by_turns(loaded):
            tool = self.shown(found.name)
            if tool is None or found.name in given:
                continue
            entry = {
                "name": found.name,
                "callWith": f"{prefix}{call_tool_for(tool, is_split=self.is_split)}",
                "fit": found.fit,
                **({} if found.reference.is_callable else {"runnable": False}),
                **fields_for_calling(tool),
            }
            room -= self.counter.count(_json(entry))
            if room < 0 and given:
                break
            given[found.name] = entry
        return given


class _Size(NamedTuple):
    summary_width: int  # characters
    tools: int  # tools for each query
    servers: int  # index of the form in which servers are listed


@dataclass(frozen=True, slots=True)
class _Page:
    """An answer that can be written in several sizes."""

    exposure: Exposure
    answers: Sequence[AnsweredQuery]
    listed_before: Collection[str]
    unlisted: Collection[str]
    definitions: Mapping[str, dict[str, Any]]
    shown: Callable[[str], Tool | None]
    servers: Sequence[str]
    note: str
    read_with: str
    get_with: str

    def sizes(self) -> list[_Size]:
        """The largest first."""
        most = max([len(answer.tools) for answer in self.answers], default=0)
        shortest = max(len(self.servers) - 1, 0)
        cut = [_Size(width, most, servers=0) for width in _SUMMARY_WIDTHS]
        cut += [_Size(0, most, servers=form) for form in range(1, shortest)]
        return [*cut, *(_Size(0, count, servers=shortest) for count in range(most, -1, -1))]

    def texts(self, size: _Size) -> list[str]:
        loaded = self._loaded_natively()
        seen: set[str] = set()
        lines = [line for answer in self.answers for line in self._of_query(answer, size, seen, loaded)]
        rest = _lines(self._hint() if seen or not loaded else "", *lines, *self._rest(size))
        if not loaded:
            return [rest]
        return [loaded_text(loaded), *([rest] if rest else [])]

    def _loaded_natively(self) -> list[str]:
        """The names of the tools whose definitions the provider itself shows the model."""
        names = (name for answer in self.answers for name in answer.loaded)
        return [name for name in dict.fromkeys(names) if self.exposure.is_native and name not in self.unlisted]

    def answer(self, size: _Size) -> SearchAnswer:
        named = dict.fromkeys(tool for answer in self.answers for tool in self._named(answer, size))
        loaded = {tool.name: self._line(tool, size.summary_width) for tool in named if self._is_given(tool)}
        others = {tool.name: self._line(tool, size.summary_width) for tool in named if tool.name not in loaded}
        heads = [self._head(answer) for answer in self.answers if answer.remark]
        return SearchAnswer(
            self.texts(size),
            self._hint(),
            {name: line.removeprefix("- ") for name, line in loaded.items()},
            [line.removeprefix("- ") for line in others.values()] + _copies(named),
            _lines(*heads, *self._rest(size)),
            list(self.definitions.values()),
            list(dict.fromkeys(name for tool in named for name in tool.names)),
        )

    def _hint(self) -> str:
        kinds = {tool.reference.kind for answer in self.answers for tool in answer.tools}
        needs_call_tool = self.definitions and self.exposure.answers == "names"
        hints = [
            CALL_HINTS[self.exposure.kind] if "tool" in kinds else "",
            _BY_CALL_TOOL if needs_call_tool else "",
            _READ_HINT.format(self.read_with) if "skill" in kinds else "",
            _GET_HINT.format(self.get_with) if kinds - {*FOUND_KINDS} else "",
        ]
        return " ".join(filter(None, hints))

    def _named(self, answer: AnsweredQuery, size: _Size) -> list[AnsweredTool]:
        """The first tools of *answer*, and those whose definitions are given."""
        return [tool for at, tool in enumerate(answer.tools) if at < size.tools or tool.name in self.definitions]

    def _of_query(self, answer: AnsweredQuery, size: _Size, seen: set[str], left_out: Collection[str]) -> Iterator[str]:
        named = self._named(answer, size)
        told = [tool for tool in named if tool.name not in left_out]
        copies = _copies(tool for tool in named if tool.name not in seen)
        if answer.remark or (len(self.answers) > 1 and (told or not left_out)):
            yield self._head(answer)
        for tool in told:
            if tool.name in seen:
                yield f"- {tool.name} [{self._marks(tool)}]: see above"
            elif tool.name in self.definitions:
                yield _json(self.definitions[tool.name])
            else:
                yield self._line(tool, size.summary_width)
            seen.add(tool.name)
        yield from copies
        if len(named) < len(answer.tools):
            yield f"... and {len(answer.tools) - len(named)} more"

    def _head(self, answer: AnsweredQuery) -> str:
        if len(self.answers) == 1:
            return f"{answer.remark[:1].upper()}{answer.remark[1:]}."
        query = one_line(answer.query, _QUERY_WIDTH)
        return f'"{query}": {answer.remark}.' if answer.remark else f'"{query}":'

    def _line(self, tool: AnsweredTool, width: int) -> str:
        shown = self.shown(tool.name) if tool.reference.kind != "skill" else None
        signature = signature_of(shown.definition) if shown else tool.name
        summary = one_line(tool.reference.summary, min(width, _RELATED_WIDTH) if tool.fit == "related" else width)
        return f"- {signature} [{self._marks(tool)}]{f': {summary}' if summary else ''}"

    def _marks(self, tool: AnsweredTool) -> str:
        is_loaded = self._is_given(tool) and self.exposure.is_searched
        is_idle = not tool.reference.is_callable
        kind = [] if tool.is_tool else [tool.reference.kind]
        return ", ".join([*kind, tool.fit, *(["loaded"] if is_loaded else []), *([_NOT_RUNNABLE] if is_idle else [])])

    def _is_given(self, tool: AnsweredTool) -> bool:
        if self.exposure.answers == "definitions" and not self.exposure.grows:
            return tool.name in self.definitions
        return (tool.is_loaded and tool.name not in self.unlisted) or tool.name in self.listed_before

    def _rest(self, size: _Size) -> list[str]:
        missing = dict.fromkeys(_missing(name, answer.near) for answer in self.answers for name in answer.missing)
        too_long = dict.fromkeys(name for answer in self.answers for name in answer.too_long)
        return [
            f"No tool is named {', '.join(missing)}." if missing else "",
            f"Also found, but too long to show: {', '.join(too_long)}." if too_long else "",
            self._advice(),
            self.servers[size.servers] if self.servers else "",
            self.note,
        ]

    def _advice(self) -> str:
        """The advice for the queries in vain; "" if there are none."""
        in_vain = [answer for answer in self.answers if answer.is_in_vain]
        if not in_vain:
            return ""
        advice = _DO_WITHOUT.format(_UNLESS if any(answer.tools for answer in in_vain) else "")
        return f"{_WHERE}{advice}" if len(in_vain) < len(self.answers) else f"D{advice[1:]}"


def _copies(tools: Iterable[AnsweredTool]) -> list[str]:
    return [f"More like {tool.name}: {', '.join(tool.copies)}" for tool in tools if tool.copies]


def _missing(name: str, near: Mapping[str, Sequence[str]]) -> str:
    meant = f" (did you mean {', '.join(near[name])}?)" if near.get(name) else ""
    return f"{shown_name(name)}{meant}"


def left_note(names: Sequence[str]) -> str:
    """Say that these tools are not in the model's list any more; "" for none."""
    if not names:
        return ""
    more = f" and {len(names) - _MOST_LEFT} more" if len(names) > _MOST_LEFT else ""
    shown = ", ".join(names[:_MOST_LEFT])
    return f"No longer in your tool list, but still callable by exact name: {shown}{more}."


def _by_turns(lists: Sequence[Sequence[AnsweredTool]]) -> Iterator[AnsweredTool]:
    """The first of each list, then the second of each, and so on."""
    for place in range(max(map(len, lists), default=0)):
        yield from (each[place] for each in lists if place < len(each))


def _json(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))
