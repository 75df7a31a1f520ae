"""The tools of a client's request, and the engine that searches them and the operator's tools."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from toolsearch.access.reach import GlobSet, Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import SharedIndex
from toolsearch.catalog.source import check_tool
from toolsearch.discovery.answers import AnsweredQuery, AnsweredTool, AnswerWriter
from toolsearch.discovery.exposure import FIXED
from toolsearch.documents.json_values import as_object
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadToolError
from toolsearch.proxy.body import Body, has_repeated_keys, list_items, list_text
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.sessions.anticipation import anticipated_in
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.state import SessionState
from toolsearch.settings import Settings
from toolsearch.threads import search_threads
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, SEPARATOR, TOOL_NAME, namespaced, require_legal_name
from toolsearch.tools.summaries import reference_to
from toolsearch.wire.anthropic.requests import DEFERRED
from toolsearch.wire.formats import RenderedTools, are_deferred, has_cache_mark, read_tool, without_cache_mark
from toolsearch.wire.proxied_parts import compact
from toolsearch.wiring import build_engine
from toolsearch_indexes.tool_index import ToolIndex
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 128 * 2**20  # of all lists that are kept; the newest one is kept in any case
_BYTES_PER_LIST: Final = 2**20  # an estimate of what a list takes with its engine, beside
_BYTES_PER_CHARACTER: Final = 12  # for each character of its text
_MOST_TEXTS: Final = 512  # words of users, for each list, whose tools are remembered
_MOST_ANSWERS: Final = 128  # to searches, for each list, which stand in each request of a conversation
_ANY_QUERY: Final = "this"  # an answer depends on the names alone
_MOST_OWN_TOOLS: Final = 40  # of a client; more tools without a prefix are taken for servers' tools
_MOST_TOOLS: Final = 5_000  # of a client; an index of more would keep all others waiting
_TOO_MANY: Final = f"the request has more than {_MOST_TOOLS:,} tools"
_NAMESPACE: Final = "namespace"
_WORDS: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class ClientTool:
    """One entry of a client's list, with the text that it was sent as.

    namespace  the name of the entry that holds it, if it is not in the list itself
    """

    definition: ToolDefinition
    entry: JsonObject
    text: str
    namespace: str = ""

    @property
    def name(self) -> str:
        """The client's name of it."""
        return str(self.entry["name"]) if self.namespace else self.definition.name

    @property
    def dotted_name(self) -> str:
        """The client's name of it, after that of its namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def is_servers(self) -> bool:
        """Whether its name, or its namespace's, has a server's prefix."""
        server, separator, local = (self.namespace or self.definition.name).partition(SEPARATOR)
        return bool(server and separator and local)


@dataclass(frozen=True, slots=True)
class Namespace:
    """An entry of a client's list that holds tools. *others* are the texts of those that are not searched."""

    body: Body
    others: Sequence[str]

    def holding(self, texts: Sequence[str]) -> str:
        """The entry with the tools *texts* alone, beside the others: as the client wrote it if these are all."""
        held = [*self.others, *texts]
        is_whole = len(held) == len(self.body.items("tools"))
        return self.body.text if is_whole else self.body.replaced({"tools": list_text(held)}).decode()

    def adding(self, entries: Sequence[JsonObject]) -> JsonObject:
        """The entry with the tools *entries* alone, for a message that adds them."""
        return {key: part.value for key, part in self.body.parts.items()} | {"tools": entries}


@dataclass(frozen=True)
class ToolList:
    """A client's list.

    others        texts of the entries that are not searched, such as tools of the provider's own
    named         the functions of the client, by name, in its order
    namespaces    the entries that hold some of them, by name
    has_search    whether the client has a tool search of its own, for other tools than these
    operator      the operator's tools, by name
    has_skills    whether the operator has skills
    always        names of those functions that the operator keeps in the list
    engine        searches both
    """

    others: Sequence[str]
    named: Mapping[str, ClientTool]
    namespaces: Mapping[str, Namespace]
    has_search: bool
    operator: Mapping[str, Tool]
    has_skills: bool
    always: Collection[str]
    engine: ToolSearch
    rendered: RenderedTools

    def conversation(self, reach: Reach) -> Conversation:
        """A new conversation over the tools in *reach*, which nobody keeps."""
        engine = self.engine
        state = SessionState.new("proxy", clock=engine.clock, reach=reach, budget=engine.options.budget)
        conversation = Conversation(engine, state)
        conversation.runs = self.named.keys()
        return conversation

    @cached_property
    def own_names(self) -> Collection[str]:
        """The tools of the client's own, beside those of servers: empty if nothing tells them apart."""
        own = [name for name, tool in self.named.items() if not tool.is_servers]
        is_known = self.has_search or len(own) < len(self.named)
        return own if is_known and len(own) <= _MOST_OWN_TOOLS else ()

    @cached_property
    def full_names(self) -> Mapping[str, str]:
        """The names of tools in namespaces, by those of the client."""
        return {tool.dotted_name: name for name, tool in self.named.items() if tool.namespace}

    def kept(self, system: str) -> set[str]:
        """The tools that stay in the list: also the client's own, which, without servers' prefixes, are those that its
        *system* text names.
        """
        words = frozenset[str]() if self.own_names else _words(system)
        return {*self.own_names, *self.always, *self._called(words)}

    def chosen(self, names: Collection[str]) -> list[str]:
        """The tools that the client calls one of *names*, or that are in a namespace that it calls so."""
        inside = [name for name, tool in self.named.items() if tool.namespace in names] if self.namespaces else []
        return [*dict.fromkeys([*self._called(names), *inside]), *filter(self.operator.__contains__, names)]

    def _called(self, names: Collection[str]) -> list[str]:
        """The tools that the client calls one of *names*."""
        return [
            name for called in sorted({*names} & self._by_clients_name.keys()) for name in self._by_clients_name[called]
        ]

    @cached_property
    def _by_clients_name(self) -> Mapping[str, Sequence[str]]:
        found = dict[str, list[str]]()
        for name, tool in self.named.items():
            found.setdefault(tool.name, []).append(name)
        return found

    @cached_property
    def marked(self) -> Sequence[JsonObject]:
        """The client's entries with a mark for the cache."""
        return [tool.entry for tool in self.named.values() if has_cache_mark([tool.entry])]

    def written(self, names: Iterable[str]) -> list[str]:
        """The entries of the tools *names* with the bytes of the client. Namespaces come last, by name."""
        texts, held = list[str](), {name: list[str]() for name in sorted(self.namespaces)}
        for name in names:
            tool = self.named[name]
            (held[tool.namespace] if tool.namespace else texts).append(tool.text)
        spaces = ((self.namespaces[name], texts) for name, texts in held.items())
        return [*texts, *(space.holding(held) for space, held in spaces if held or space.others)]

    def added(self, names: Iterable[str]) -> Mapping[str, JsonObject]:
        """The entries of a message that adds those of the tools *names* that are the client's, each under the name of
        its first tool.
        """
        entries, held = dict[str, JsonObject](), dict[str, tuple[str, list[JsonObject]]]()
        for name in names:
            if tool := self.named.get(name):
                entry = without_cache_mark(tool.entry)
                if tool.namespace:
                    held.setdefault(tool.namespace, (name, []))[1].append(entry)
                else:
                    entries[name] = entry
        spaces = {first: self.namespaces[space].adding(tools) for space, (first, tools) in held.items()}
        return entries | spaces

    @cached_property
    def deferred(self) -> Mapping[str, str]:
        """The entries that defer the tools, by name and in its order; none for an API whose answers hold the tools."""
        if self.rendered.wire_format != "anthropic":
            return {}
        operator = zip(
            self.operator, self.rendered.of([tool.definition for tool in self.operator.values()]), strict=True
        )
        entries = {**dict(operator), **{name: without_cache_mark(tool.entry) for name, tool in self.named.items()}}
        return {name: compact({**entries[name], **DEFERRED}) for name in sorted(entries)}

    @cached_property
    def search_definition(self) -> ToolDefinition:
        return self.conversation(Reach()).search_definition()

    @cached_property
    def remembered(self) -> _Remembered:
        return _Remembered(self)


class _Remembered:
    """What each request of a conversation needs of a list, and only the first one computes."""

    def __init__(self, tools: ToolList) -> None:
        self._tools = tools
        self.surely_asked = lru_cache(_MOST_TEXTS)(self._surely_asked)
        self.answer = lru_cache(_MOST_ANSWERS)(self._answer)
        self.tokens = lru_cache(_MOST_TEXTS)(self._tokens)

    def _surely_asked(self, reach: Reach, said: str) -> tuple[str, ...]:
        """The names of the tools in *reach* that the words *said* surely ask for."""
        return tuple(anticipated_in(self._tools.conversation(reach), said, "messages"))

    def _tokens(self, name: str) -> int:
        """An estimate: the tokens of the definition of the tool *name*."""
        tool = self._tools.engine.catalog.find(name)
        return 0 if tool is None else definition_tokens(tool.definition, HeuristicTokenCounter())

    def _answer(self, reach: Reach, names: tuple[str, ...]) -> str:
        """The text with the definitions of the tools in *reach*, and the skills, that a search has found by these
        *names*.
        """
        conversation = self._tools.conversation(reach)
        entries = [entry for name in names if (entry := conversation.shown_entry(name)) is not None]
        references = [replace(reference_to(entry, 1.0), is_callable=True) for entry in entries]
        found = [AnsweredTool(each, "fits", is_loaded=each.kind == "tool") for each in references]
        writer = AnswerWriter(conversation.shown_entry, conversation.options.answer_tokens, self._tools.engine.counter)
        fitting = sum(each.is_tool for each in found)
        answered = AnsweredQuery(_ANY_QUERY, found, finding="fits" if found else "nothing", fitting=fitting)
        return writer.write(FIXED, [answered]).text


@lru_cache(16)
def _words(text: str) -> frozenset[str]:
    """The words of *text*, also in lower case: some programs name ``webfetch`` as "WebFetch"."""
    words = _WORDS.findall(text)
    return frozenset([*words, *map(str.lower, words)])


@dataclass(eq=False)
class ToolLists:
    """The lists of all clients, each made once and kept while it is in use.

    operator  the operator's tools, which each list is searched with
    keep      globs of the names of clients' tools that are always listed
    index     an index that holds the operator's tools, perhaps beside others; None: one is made
    """

    settings: Settings
    operator: Catalog | None = None
    keep: Collection[str] = ()
    index: ToolIndex | None = None
    _vectors: VectorCache = field(default_factory=VectorCache)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)  # one list is made at a time
    _made: OrderedDict[tuple[str, str, int], asyncio.Task[ToolList]] = field(
        default_factory=OrderedDict[tuple[str, str, int], "asyncio.Task[ToolList]"]
    )

    @property
    def texts(self) -> list[str]:
        """The lists that need not be read again."""
        return [text for _, text, _ in self._made]

    @property
    def bytes(self) -> int:
        """About how much memory the lists take."""
        return sum(_BYTES_PER_LIST + _BYTES_PER_CHARACTER * len(text) for text in self.texts)

    async def get(self, body: Body, wire_format: str) -> ToolList:
        """The list in *body*. Raises PassUnchangedError if it cannot be searched."""
        text = body.written_at("tools", "[]")
        text = "[]" if text == "null" else text
        if not text.startswith("["):
            raise PassUnchangedError("the tools are not a list")
        version = 0 if self.operator is None else self.operator.snapshot().version
        key = (wire_format, text, version)
        task = self._made.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._made[key] = asyncio.create_task(self._made_alone(text, wire_format))
        self._made.move_to_end(key)
        while self.bytes > _MOST_BYTES and len(self._made) > 1:
            self._made.popitem(last=False)
        return await asyncio.shield(task)  # a client that hangs up does not take it from the others

    async def _made_alone(self, text: str, wire_format: str) -> ToolList:
        async with self._making:
            return await search_threads.run(self._make, text, wire_format)

    def _make(self, text: str, wire_format: str) -> ToolList:
        if has_repeated_keys(text):
            raise PassUnchangedError("a tool has a key twice")
        read = _ClientTools(wire_format)
        read.add(text)
        named, taken = read.named, read.names | read.named.keys()
        if {TOOL_NAME, CALL_TOOL} & named.keys():
            raise PassUnchangedError("the client has its own tool search")
        operator = {tool.name: tool for tool in self.operator or () if tool.name not in taken}
        if self.operator is not None and len(operator) < len(self.operator):
            logger.warning("a client has tools of the same names as the operator's, and does not get those")
        skills = _skills(self.operator, taken)
        tools = [*operator.values(), *skills, *(Tool(each.definition) for each in named.values())]
        always = frozenset(filter(GlobSet(self.keep).match, named))
        engine = self._engine(tools, None if not operator else SharedIndex(self._operators_index, operator))
        rendered = RenderedTools(wire_format, {})
        return ToolList(
            read.others, named, read.namespaces, read.has_search, operator, bool(skills), always, engine, rendered
        )

    @cached_property
    def _operators_index(self) -> ToolIndex:
        return self.index or self._engine(self.operator or ()).index

    def _engine(self, tools: Catalog | Iterable[Tool], shared: SharedIndex | None = None) -> ToolSearch:
        """An engine in memory."""
        index = self.settings.index.model_copy(update={"index_dir": None})
        settings = self.settings.model_copy(update={"index": index})
        return build_engine(settings, tools, cache=self._vectors, _shared=shared)


def _skills(operator: Catalog | None, taken: Collection[str]) -> list[Tool]:
    """The operator's skills; none if the client has a tool of that name that reads them."""
    if operator is None or READ_SKILL in taken:
        return []
    return [each for name, each in operator.contents.items() if each.is_skill and name not in taken]


class _ClientTools:
    """Reads a client's list. Raises PassUnchangedError if it cannot be searched."""

    def __init__(self, wire_format: str) -> None:
        self._wire_format = wire_format
        self.others: list[str] = []
        self.names: set[str] = set()  # of all entries, searched or not
        self.named: dict[str, ClientTool] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.has_search = False
        self._count = 0

    def add(self, text: str) -> None:
        try:
            items = list_items(text)
        except ValueError:
            raise PassUnchangedError(_TOO_MANY) from None
        for value, written in items:
            entry = as_object(value) or {}
            self.names.add(str((as_object(entry.get("function")) or entry).get("name")))
            if entry.get("type") == _NAMESPACE and self._add_namespace(entry, written):
                continue
            if (tool := self._tool(entry, written)) is None:
                self.others.append(written)
            elif tool.definition.name in self.named:
                raise PassUnchangedError("two tools have one name")
            else:
                self.named[tool.definition.name] = tool

    def _add_namespace(self, entry: JsonObject, written: str) -> bool:
        """False if none of its tools is searched."""
        name, body = str(entry.get("name")), Body.read(written.encode(), lists=("tools",))
        others, count = list[str](), len(self.named)
        for value, text in () if body is None else body.items("tools"):
            tool = self._tool(as_object(value) or {}, text, name)
            if tool is None or tool.definition.name in self.named:
                others.append(text)
            else:
                self.named[tool.definition.name] = tool
        if body is None or len(self.named) == count:
            return False
        if name in self.namespaces:
            raise PassUnchangedError("two namespaces have one name")
        self.namespaces[name] = Namespace(body, others)
        return True

    def _tool(self, entry: JsonObject, text: str, namespace: str = "") -> ClientTool | None:
        """None for an entry that is not searched."""
        self._count += 1
        if self._count > _MOST_TOOLS:
            raise PassUnchangedError(_TOO_MANY)
        kind = str(entry.get("type"))
        is_search = kind.startswith("tool_search")
        if is_search and entry.get("execution") != "client":
            raise PassUnchangedError("the client has its own tool search, which the model API runs")
        if is_search or are_deferred([entry]):
            self.has_search = True
            return None
        definition = _definition(entry, self._wire_format, namespace)
        return None if definition is None else ClientTool(definition, entry, text, namespace)


def _definition(entry: JsonObject, wire_format: str, namespace: str) -> ToolDefinition | None:
    """The function in *entry*; None for anything else, and for one that cannot be searched."""
    kinds = (None, "custom") if wire_format == "anthropic" else ("function",)
    if entry.get("type") not in kinds:
        return None
    try:
        definition = read_tool(entry)
        require_legal_name(definition.name)
        if namespace:
            require_legal_name(namespace)
            definition = replace(definition, name=namespaced(namespace, definition.name))
        if definition.name not in (TOOL_NAME, CALL_TOOL):  # the client's own tool search is found later
            check_tool(Tool(definition))
    except (BadToolError, TypeError):
        return None
    return definition
