"""Searches of a conversation: the tools and skills found, those that the model is shown, and the text it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Protocol, TypeAlias

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery, AnsweredTool, AnswerFinding, AnswerWriter, left_note
from toolsearch.discovery.copies import MORE_LOOKED_AT, grouped
from toolsearch.discovery.deprecation import successors_first
from toolsearch.discovery.discovered_tools import WeakSearches
from toolsearch.discovery.exposure import Exposure
from toolsearch.discovery.search_tool import AskedSearch, SearchArguments
from toolsearch.discovery.servers import Servers
from toolsearch.discovery.shown import Fit, fits_of, is_full_name, is_weak, loaded
from toolsearch.discovery.view import View
from toolsearch.errors import BadPatternError, BadQueryError
from toolsearch.sessions.host import ConversationHost, note_found
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.sent import Sent
from toolsearch.sessions.state import SessionState
from toolsearch.tools.definition import FOUND_KINDS, KINDS, TOOLS, EntryKind, Tool, ToolReference
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, near_names
from toolsearch.tools.results import ToolOutput, text_block
from toolsearch_indexes.queries import Select, Strategy, Words, read_form, select_missing

_MOST_COUNTED = 50  # matching tools are counted up to this number
_MOST_RELATED = 2  # tools named that are only related, where something fits; and other entries, unless only tools fit
_MOST_CONTENTS = 2  # skills of one search by words, unless the model asks for kinds
_CALLING = ("fixed", "deferred")  # modes in which the list has the call tool
_MOST_NEAR = 5  # missing names of a call that get suggestions; each is compared with every name in reach


_Fitting: TypeAlias = tuple[ToolReference, Fit]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: the tools that the model is shown, and the names of those that cannot be shown."""

    shown: list[ToolReference]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of the search tool: *output* as the model reads it, and the answers from which it was written."""

    output: ToolOutput
    queries: list[AnsweredQuery]


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches for one caller.

    shown  name -> the tool or other entry as models are shown it, or None if they are not shown it
    runs   the names of tools that the catalog alone cannot run
    weak   the earlier unsuccessful searches of the caller's session, if it has one
    kinds  what the model has a way to use
    """

    host: ConversationHost
    principal: Principal
    session_id: str
    reach: Reach
    view: View
    shown: Callable[[str], Tool | None]
    runs: Collection[str] = ()
    weak: WeakSearches | None = None
    kinds: tuple[EntryKind, ...] = FOUND_KINDS

    def find(
        self, query: str, *, limit: int, strategy: Strategy | None = None, server: str | None = None
    ) -> list[ToolReference]:
        """Find the tools and skills that fit, even tools that cannot be shown. Use is learnt from the result."""
        found = successors_first(self._search(query, limit, strategy, server, FOUND_KINDS), self.view.find)
        note_found(self.host, self.principal, self.session_id, query, strategy, found)
        return found

    def _find_both(self, asked: AskedSearch) -> tuple[list[list[ToolReference]], list[ToolReference]]:
        """Find the tools that fit, each with its copies behind it, and the skills or other entries that
        are asked for. Others take no tool's place. A query by names or by a pattern gives each tool a place of its own.
        """
        by_words = _is_by_words(asked)
        found, others = self._ranked(asked, asked.limit + (MORE_LOOKED_AT if by_words else 0), by_words=by_words)
        found = successors_first(found, self.view.find)
        groups = grouped(asked.query, found, self.shown)[: asked.limit] if by_words else [[each] for each in found]
        named = [*(each for group in groups for each in group), *others]
        note_found(self.host, self.principal, self.session_id, asked.query, asked.strategy, named)
        return groups, others

    def _ranked(
        self, asked: AskedSearch, most: int, *, by_words: bool
    ) -> tuple[list[ToolReference], list[ToolReference]]:
        """The best *most* tools, and the other entries that fit as well as they do. One search finds both, but where so
        many others fit that tools are missing.
        """
        kinds = self._kinds(asked)
        beside = 0 if kinds == TOOLS else _MOST_CONTENTS if by_words and asked.kinds is None else asked.limit
        found = self._search(asked.query, most + beside, asked.strategy, asked.server, kinds)
        tools = [each for each in found if each.kind == "tool"]
        others = self.split([each for each in found if each.kind != "tool"]).shown
        if "tool" in kinds and len(tools) < most and len(found) - len(tools) > beside:
            tools = self._search(asked.query, most, asked.strategy, asked.server)
        return tools[:most], others[:beside]

    def _kinds(self, asked: AskedSearch) -> tuple[EntryKind, ...]:
        """The kinds that are asked for, that the model has a way to use, and that there are."""
        wanted = FOUND_KINDS if asked.kinds is None else asked.kinds
        usable: tuple[EntryKind, ...] = tuple(kind for kind in wanted if kind in self.kinds)
        if not usable:
            raise BadQueryError(f"nothing here gives you {' or '.join(wanted)}; the kinds are {', '.join(self.kinds)}")
        return usable if self.view.contents or asked.kinds is not None else TOOLS

    def split(self, found: Sequence[ToolReference]) -> Found:
        """Separate the tools of *found* that the model is shown from those that are too long for it."""
        hidden = [reference.name for reference in found if self.shown(reference.name) is None]
        refused = tuple(name for name in hidden if self.view.allows(name))
        shown = [reference for reference in found if reference.name not in hidden]
        return Found([replace(each, is_callable=True) if each.name in self.runs else each for each in shown], refused)

    def answers(self, asked: SearchArguments) -> list[AnsweredQuery]:
        """Answer each query. A faulty query does not affect the others.

        Raises BadQueryError, written for the model, for a server that cannot be searched, which is the same for all of
        them. For a single query, it raises BadQueryError or BadPatternError.
        """
        for server in {each.server for each in asked.searches if each.server is not None}:
            self.host.view(self.reach, server)
        if len(asked.searches) == 1:
            answers = [self._answered(asked.searches[0])]
        else:
            answers = [self._answered_or_refused(each) for each in asked.searches]
        return self._with_near_names(asked, answers)

    def servers(self, asked: SearchArguments, answers: Sequence[AnsweredQuery]) -> list[str]:
        """The list of servers, in forms of decreasing length; empty unless the model asks for it, or no tool fits. A
        session that has not asked is given a list once, and again only if there are other servers.
        """
        there = self._servers
        if asked.lists_servers is not None:
            return there.every(asked.lists_servers)
        is_in_vain = all(answer.finding != "fits" and not answer.missing for answer in answers)
        if is_in_vain and (self.weak is None or self.weak.tells(there.tools)):
            return there.some()
        return []

    def trouble(self, answers: Sequence[AnsweredQuery]) -> str:
        """The trouble with servers that concerns *answers*; see `Servers.trouble`."""
        found = dict.fromkeys(tool.name for answer in answers for tool in answer.tools)
        tools = [self.view.find_entry(name) for name in found]
        servers = [tool.definition.server for tool in tools if tool is not None]
        return self._servers.trouble(servers, is_answered=bool(found))

    @property
    def _servers(self) -> Servers:
        tools, skills = self.view.tools_by_server, self.view.skills_by_server
        tools = {server: tools.get(server, 0) for server in sorted({*tools, *skills})}
        return Servers(tools, self.view.server_health, self.host.catalog.server_purpose, skills)

    def _answered_or_refused(self, asked: AskedSearch) -> AnsweredQuery:
        try:
            return self._answered(asked)
        except (BadQueryError, BadPatternError) as error:
            return AnsweredQuery(asked.query, finding="nothing", error=str(error))

    def _answered(self, asked: AskedSearch) -> AnsweredQuery:
        groups, contents = self._find_both(asked)
        found = [group[0] for group in groups]
        copies = {group[0].name: tuple(each.name for each in group[1:]) for group in groups}
        parted = self.split(found)
        earlier = self._earlier(asked.query, [*parted.shown, *contents])
        tools = list(zip(parted.shown, fits_of(parted.shown, is_retry=bool(earlier)), strict=True))
        others = list(zip(contents, fits_of(contents, is_retry=bool(earlier)), strict=True))
        is_answered = _count(tools) + _count(others) > 0
        if _is_by_words(asked):
            tools = _told(tools, _MOST_RELATED if is_answered else len(tools))
            others = _told(others, _MOST_RELATED if _count(others) or not is_answered else 0)
        load = loaded(asked.query, [fit for _, fit in tools], by_pattern=asked.strategy == "regex")
        names = _meant(asked.query, found, [reference for reference, _ in tools[:load]])
        count = _count(tools)
        total = self._total(asked) if 0 < count == asked.limit and not _is_as_written(asked.query, found) else count
        told = merge(tools, others, key=lambda each: -each[0].score)
        return AnsweredQuery(
            asked.query,
            [
                AnsweredTool(reference, fit, reference.name in names, copies.get(reference.name, ()))
                for reference, fit in told
            ],
            self._finding(asked.query, parted.shown, contents, earlier),
            total,
            total == _MOST_COUNTED,
            parted.refused,
            self._missing(asked, [*found, *contents]),
            earlier=earlier,
        )

    def _missing(self, asked: AskedSearch, found: Sequence[ToolReference]) -> list[str]:
        """The selected names that do not exist."""
        if _is_as_written(asked.query, found):
            return []
        kinds = self._kinds(asked)
        return select_missing(asked.query, lambda name: self._search(name, 1, None, asked.server, kinds))

    def _with_near_names(self, asked: SearchArguments, answers: Sequence[AnsweredQuery]) -> list[AnsweredQuery]:
        """*answers*, with similar names in reach for the first of the missing names."""
        servers = {
            name: each.server for each, answer in zip(asked.searches, answers, strict=True) for name in answer.missing
        }
        near = {name: self._near(name, server) for name, server in islice(servers.items(), _MOST_NEAR)}
        return [
            replace(answer, near={name: near[name] for name in answer.missing if near.get(name)}) for answer in answers
        ]

    def _near(self, name: str, server: str | None) -> list[str]:
        view = self.host.view(self.reach, server)
        skills = [each.name for each in view.contents.values() if each.definition.kind in self.kinds]
        return [near for near in near_names(name, [*view.names, *skills]) if self.shown(near)]

    def _earlier(self, query: str, references: Sequence[ToolReference]) -> str:
        """An earlier search in vain for the same; "" for none."""
        if self.weak is None or not isinstance(read_form(query), Words):
            return ""
        return self.weak.earlier(query, [reference.name for reference in references])

    def _finding(
        self, query: str, tools: Sequence[ToolReference], contents: Sequence[ToolReference], earlier: str
    ) -> AnswerFinding:
        if not (is_weak(tools, is_retry=bool(earlier)) and is_weak(contents, is_retry=bool(earlier))):
            return "fits"
        references = [*tools, *contents]
        if self.weak is not None and isinstance(read_form(query), Words):
            self.weak.note(query, [reference.name for reference in references])
        if earlier:
            return "again"
        return "weak" if references else "nothing"

    def _total(self, asked: AskedSearch) -> int:
        """How many tools fit, also beyond the limit."""
        found = self._search(asked.query, max(asked.limit, _MOST_COUNTED), asked.strategy, asked.server)
        return sum(fit != "related" for fit in fits_of(found))

    def _search(
        self,
        query: str,
        limit: int,
        strategy: Strategy | None,
        server: str | None,
        kinds: Collection[EntryKind] = TOOLS,
    ) -> list[ToolReference]:
        return self.host.search(
            query,
            limit=limit,
            strategy=strategy,
            reach=self.reach,
            server=server,
            principal=self.principal,
            kinds=kinds,
        )


class Searching(Protocol):
    """The parts of a conversation that its searches need."""

    state: SessionState
    principal: Principal
    host: ConversationHost
    options: SessionOptions
    runs: Collection[str]

    @property
    def reach(self) -> Reach: ...
    @property
    def view(self) -> View: ...
    @property
    def exposure(self) -> Exposure: ...
    @property
    def discovered(self) -> list[str]: ...

    def shown_tool(self, name: str) -> Tool | None: ...
    def shown_entry(self, name: str) -> Tool | None: ...
    def load(self, names: Collection[str]) -> None: ...
    def loadable(self, names: Iterable[str]) -> list[str]: ...
    def take_left(self) -> list[str]: ...


def search_in(
    conversation: Searching, query: str, *, limit: int | None, strategy: Strategy | None, server: str | None
) -> Found:
    """Search within reach of *conversation*, and load all that is found; for a tool's full name, that tool alone."""
    searcher, counters = _searcher(conversation), conversation.state.counters
    limit = conversation.options.limit if limit is None else limit
    found = searcher.find(query, limit=limit, strategy=strategy, server=server)
    parted = searcher.split(found)
    conversation.load(_meant(query, found, parted.shown))
    counters.searches += 1
    counters.empty_searches += not (parted.shown or parted.refused)
    return parted


def answers_in(conversation: Searching, asked: SearchArguments) -> list[AnsweredQuery]:
    """Answer each query of a call, and load the tools that the answers call loaded."""
    answers = _searcher(conversation).answers(asked)
    conversation.load(list(dict.fromkeys(name for answer in answers for name in answer.loaded)))
    counters = conversation.state.counters
    counters.searches += len(answers)
    counters.empty_searches += sum(not (answer.tools or answer.too_long) for answer in answers)
    return answers


def answered_in(conversation: Searching, arguments: Mapping[str, Json]) -> Answered:
    """Answer as `Conversation.answer` does, for programs that need more details of the result."""
    options, exposure = conversation.options, conversation.exposure
    asked = SearchArguments.parse(
        arguments, default_limit=options.limit, max_limit=options.max_limit, servers=conversation.view.servers
    )
    answers = answers_in(conversation, asked)
    given = list(dict.fromkeys(name for each in answers for name in each.loaded))
    named = [name for each in answers for tool in each.tools for name in tool.names]
    by_name = conversation.loadable(given)
    searcher = _searcher(conversation)
    writer = AnswerWriter(
        conversation.shown_entry,
        options.answer_tokens,
        conversation.host.counter,
        read_skill=CALL_TOOL if _has_only_call_tool(conversation.state.sent.now) else READ_SKILL,
    )
    answer = writer.write(
        exposure,
        answers,
        listed_before=_listed(conversation, named),
        unlisted=[name for name in given if name not in by_name],
        servers=searcher.servers(asked, answers),
        note="\n".join(filter(None, [asked.note, searcher.trouble(answers), left_note(conversation.take_left())])),
    )
    refused = list(dict.fromkeys(name for each in answers for name in each.too_long))
    skills = list(dict.fromkeys(tool.name for each in answers for tool in each.tools if tool.reference.kind == "skill"))
    others = dict.fromkeys(name for name in named if name not in given and name not in skills)
    structured = {"tools": given, "alsoFound": list(others), "refused": refused, "skills": skills}
    output = ToolOutput(
        tuple(map(text_block, answer.texts)),
        structured={key: names for key, names in structured.items() if names or key == "tools"},
    )
    return Answered(output, answers)


def _listed(conversation: Searching, names: Collection[str]) -> list[str]:
    """The *names* that are in the list that the model was sent, if it was sent one."""
    sent = conversation.state.sent.now
    held = conversation.discovered if sent.endpoint is None else sent.visible
    return [name for name in names if name in held]


def _has_only_call_tool(sent: Sent) -> bool:
    """Whether the list has no ``readSkill`` and will not get it, so that skills that came later are called."""
    return sent.endpoint is not None and sent.mode in _CALLING and READ_SKILL not in sent.listed


def load_in(conversation: Searching, names: Collection[str]) -> list[Tool]:
    """Count the tools that a search newly shows to a model. Return the existing tools of *names*, as they are shown."""
    tools = [tool for tool in map(conversation.shown_tool, names) if tool is not None]
    new = {tool.name for tool in tools if tool.name not in conversation.state.discovered}
    conversation.state.unused |= new
    conversation.host.telemetry.discovered(len(new))
    return tools


def _is_by_words(asked: AskedSearch) -> bool:
    return isinstance(read_form(asked.query), Words) and asked.strategy != "regex"


def _is_as_written(query: str, found: Sequence[ToolReference]) -> bool:
    """Whether *query* selects by full names alone, and all are *found*.

    A name without its server may mean tools of several servers, so the number of tools found is not enough.
    """
    form = read_form(query)
    return isinstance(form, Select) and {reference.name for reference in found}.issuperset(form.names)


def _meant(query: str, found: Sequence[ToolReference], fitting: Sequence[ToolReference]) -> list[str]:
    """The names of *fitting*. If *query* is the full name of the best of *found*, that name alone."""
    meant = found[:1] if is_full_name(query, found) else fitting
    return [reference.name for reference in meant]


def _told(found: list[_Fitting], related: int) -> list[_Fitting]:
    """Those of *found* that fit, and the first *related* of the others."""
    return found[: _count(found) + related]


def _count(found: Sequence[_Fitting]) -> int:
    """How many are more than related."""
    return sum(fit != "related" for _, fit in found)


def _searcher(conversation: Searching) -> Searcher:
    return Searcher(
        conversation.host,
        conversation.principal,
        conversation.state.id,
        conversation.reach,
        conversation.view,
        conversation.shown_entry,
        conversation.runs,
        conversation.state.weak_searches,
        KINDS if conversation.exposure.kind in _CALLING else FOUND_KINDS,
    )
