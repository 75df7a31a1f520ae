"""`ToolSearch`: one catalog, one index that follows it, and the sessions that share both. The composition root."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, TypeVar, Unpack
from weakref import WeakKeyDictionary

from toolsearch.access.principals import LOCAL, Principal, require_principal
from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.source import ToolLike
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.search_tool import DEFAULT_LIMIT
from toolsearch.discovery.shown import ShownDefinitions
from toolsearch.discovery.view import View, ViewCache
from toolsearch.errors import BadSettingError, EncoderError
from toolsearch.option_values import UNSET, Unset, name_list
from toolsearch.session import Session
from toolsearch.sessions.conversation import Conversation, settle_for
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.state import SessionState, read_exposure
from toolsearch.sessions.store import SessionStore
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.sessions.usage import UsageLog
from toolsearch.sessions.usage_evidence import vocabulary_of
from toolsearch.setting_types import read_strategy
from toolsearch.telemetry import Telemetry
from toolsearch.tokens import TokenCounter, default_counter
from toolsearch.tools.definition import FOUND_KINDS, KINDS, EntryKind, ToolReference, ToolSearchResponse
from toolsearch.tools.summaries import reference_to
from toolsearch.wire import anthropic
from toolsearch.wire.capabilities import RevealSetting
from toolsearch.wire.formats import RenderedTools
from toolsearch_indexes.documents import Explanation
from toolsearch_indexes.queries import RANKINGS, Ranking, Strategy, require_limit, require_text

if TYPE_CHECKING:  # indexes and numpy are loaded when an engine is made, since many imports make none
    from toolsearch.catalog.index_opening import IndexKeeper
    from toolsearch.catalog.indexing import SharedIndex
    from toolsearch_indexes.encoders.protocol import Encoder
    from toolsearch_indexes.reader import Reader
    from toolsearch_indexes.tool_index import ToolIndex
    from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

_MAX_NOTES = 1_000  # notes that are kept; all are logged
_WHOLE = Reach()

_Asked = TypeVar("_Asked")


class EngineOptions(TypedDict, total=False):
    """The options of an engine besides its catalog and its index directory; see `ToolSearch`."""

    strategy: Strategy
    encoder: Encoder | str | Path | None
    reader: Reader | str | Path | None
    sessions: SessionStore | None
    options: SessionOptions | None
    manager: ToolCallingManager | None
    counter: TokenCounter | None
    telemetry: Telemetry | None
    clock: Callable[[], float]
    cache: VectorCache | None
    usage: UsageLog | None
    index: ToolIndex | None
    requests: bool
    requests_files: Iterable[str | Path]


class ToolSearch:
    """Searches *catalog*, and opens sessions over it. Safe to share between threads.

    catalog    a Catalog, or a list for one: tools, functions, sources. The engine follows every change of a Catalog,
               whose maker closes it
    strategy   default of searches: "auto" is hybrid with an encoder, and keyword without one
    encoder    an Encoder, or a name for `open_encoder`: "auto" (the transformer if its weights are installed,
               else the built-in one), "built-in", "transformer", "multilingual", a folder, or the name of a
               sentence-transformers model; None searches without meaning
    reader     a Reader, which reads the request with the first tools of a hybrid answer, or a name for
               `open_reader`: "auto" (the one with installed weights, if there is one), or a folder; None reads
               nothing again
    index_dir  the folder of the index between starts; None keeps it in memory
    telemetry  records searches, and with the default manager also calls; by default to OpenTelemetry's own providers
    cache      a cache of vectors, to share with other engines; its maker closes it. None means one of its own
    usage      lets searches learn from the calls of sessions; None, the default, learns nothing
    index      an index of your own (see `ToolIndex`), in place of the built-in one and its encoder
    requests   index widely used tools with their users' requests, which ship with the package
    requests_files  index your tools with the requests in these files of ``toolsearch enrich``, which win. They are read
               now, each as a whole. Raises SourceError

    If an encoder or a reader cannot be loaded, or fails, MissingExtraError or EncoderError is raised. Under "auto" the
    engine searches by keyword instead, or without the reader, and `notes` has the reason.
    """

    def __init__(
        self,
        catalog: Catalog | Iterable[ToolLike],
        *,
        strategy: Strategy = "auto",
        encoder: Encoder | str | Path | None = "auto",
        reader: Reader | str | Path | None = "auto",
        index_dir: str | Path | None = None,
        sessions: SessionStore | None = None,
        options: SessionOptions | None = None,
        manager: ToolCallingManager | None = None,
        counter: TokenCounter | None = None,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.time,
        cache: VectorCache | None = None,
        usage: UsageLog | None = None,
        index: ToolIndex | None = None,
        requests: bool = True,
        requests_files: Iterable[str | Path] = (),
        _keeper: IndexKeeper | None = None,  # the service keeps indexes beside its store
        _shared: SharedIndex | None = None,  # the proxy searches the operator's tools beside those of each client
    ) -> None:
        from toolsearch.catalog.index_directory import Generation, IndexDirectory
        from toolsearch.catalog.index_opening import IndexOpener, own_cache
        from toolsearch.catalog.indexing import CatalogIndex
        from toolsearch.catalog.requests_file import request_source

        strategy = read_strategy(strategy)
        if strategy in ("hybrid", "semantic") and encoder is None:
            raise BadSettingError(f"the strategy {strategy!r} needs an encoder: give one as encoder=, or use 'auto'")
        if index is not None:
            _require_usable(index, strategy, index_dir=index_dir, usage=usage)
        stored = catalog if isinstance(catalog, Generation) else None
        self.catalog = _catalog_of(catalog if stored is None else stored.catalog())
        self._owns_catalog = self.catalog is not catalog
        self.options = options or SessionOptions()
        self.telemetry = telemetry or Telemetry()
        self.manager = manager or ToolCallingManager(telemetry=self.telemetry)
        self.counter = counter or default_counter()
        self.clock = clock
        self.usage = usage
        self.sessions = sessions or SessionStore(budget=self.options.budget, clock=clock)
        self.definitions = ShownDefinitions(self.counter, self._note)
        self.rendered = RenderedTools(anthropic.PROVIDER, anthropic.DEFERRED)
        self.notes: list[str] = []
        self._strategy: Strategy = strategy
        keeper = IndexDirectory(Path(index_dir)) if index_dir is not None else _keeper
        self._owns_cache = cache is None
        self._cache = cache or own_cache(keeper, encoder)
        self.requests = request_source(shipped=requests, files=requests_files)
        self._opener = IndexOpener(
            self.catalog, strategy, encoder, keeper, self._cache, self._note, self.requests, reader, _shared
        )
        own = None if index is None else CatalogIndex(self.catalog, index, requests=self.requests)
        self._followed = own or self._opener.open(stored)
        self.vocabulary = vocabulary_of(self.index)
        self._views = ViewCache(self.catalog, self.counter)
        # Kept, since each session counts the calls of its turn.
        self._open: WeakKeyDictionary[SessionState, Session] = WeakKeyDictionary()
        self._lock = threading.Lock()

    @classmethod
    def open(cls, index_dir: str | Path, **options: Unpack[EngineOptions]) -> Self:
        """Open the index that `save` or ``toolsearch index`` wrote to *index_dir*.

        *options* are those of the constructor. If no encoder is given, the one that made the index is used. The same
        holds for *requests* and *requests_files*. Raises IndexStoreError if there is no usable index.
        """
        from toolsearch.catalog.index_directory import IndexDirectory

        stored = IndexDirectory(Path(index_dir)).read()
        if options.get("encoder") is None:
            options["encoder"] = stored.encoder_spec
        options.setdefault("requests", stored.requests.shipped)
        options.setdefault("requests_files", stored.requests.files)
        return cls(stored, index_dir=index_dir, **options)

    @property
    def index(self) -> ToolIndex:
        return self._followed.index

    @property
    def strategies(self) -> tuple[Ranking, ...]:
        """The strategies that a search can name, the default first."""
        default = self.index.resolve_strategy(self._strategy)
        return (default, *(strategy for strategy in self.index.rankings if strategy != default))

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        strategy: Strategy | None = None,
        reach: Reach | None = None,
        server: str | None = None,
        principal: Principal | None = None,
        kinds: Collection[EntryKind] = FOUND_KINDS,
    ) -> list[ToolReference]:
        """Return at most *limit* tools and skills, best first, ties with tools first and then by name. If nothing fits:
        ``[]``.

        Only entries of *kinds*, in *reach*, in the reach of *principal*, and of *server* are ranked. If the
        engine learns from use, tools that the principal has used rank a little higher. `ToolSearchIndex.search`
        describes the forms of a query, and when BadQueryError and BadPatternError are raised.
        """
        return self._search(query, limit, 1, strategy, reach, server, principal, kinds).references

    def search_with_total(
        self,
        query: str,
        *,
        limit: int = DEFAULT_LIMIT,
        strategy: Strategy | None = None,
        reach: Reach | None = None,
        server: str | None = None,
        principal: Principal | None = None,
        kinds: Collection[EntryKind] = FOUND_KINDS,
    ) -> ToolSearchResponse:
        """Return the result of `search`, and the number of entries found without a limit: all of them are ranked."""
        most = len(self.catalog) + len(self.catalog.contents)
        return self._search(query, limit, most, strategy, reach, server, principal, kinds)

    def explain(
        self,
        query: str,
        tool: str,
        *,
        strategy: Strategy | None = None,
        reach: Reach | None = None,
        server: str | None = None,
        principal: Principal | None = None,
    ) -> Explanation:
        """Explain the place at which `search` finds *tool* for *query*, or why it does not, with every part of the
        score. The place of a skill, a prompt or a resource is among these.

        A tool that *principal* may not reach is explained as one that does not exist. Raises the errors of `search`,
        and BadSettingError if an index of your own has no method `explain`.
        """
        from toolsearch_indexes.tool_index import ExplainsSearches

        require_text(query, "the query")
        require_text(tool, "the name of a tool")
        index = self._followed.contents if tool in self.catalog.contents else self.index
        if not isinstance(index, ExplainsSearches):
            raise BadSettingError(f"the index, a {type(index).__name__}, has no method 'explain'; see `ToolIndex`")
        view = self.view(_bounded(reach, principal), server)
        within = view.selection_of(KINDS) if tool in self.catalog.contents else view.selection
        favour = self._favour(query, principal)
        explained = self._with_keyword_fallback(
            lambda by: index.explain(query, tool, strategy=by, within=within, favour=favour),
            strategy or self._strategy,
        )
        if principal is not None and self.view(principal.reach).find_entry(explained.tool) is None:
            return Explanation(explained.tool, explained.strategy, "no such tool")
        if explained.place is not None and explained.score < self.options.min_score:
            return replace(explained, outcome="below min_score", place=None)
        return explained

    def view(self, reach: Reach, server: str | None = None) -> View:
        """Return the catalog as a caller with *reach* sees it. Sessions with the same reach share one view."""
        _require_reach(reach)
        if server is not None:
            require_text(server, "the name of a server")
        return self._views.get(reach, server)

    def session(
        self,
        session_id: str,
        *,
        principal: Principal = LOCAL,
        reach: Reach | None = None,
        allow: Iterable[str] | Unset = UNSET,
        deny: Iterable[str] | Unset = UNSET,
        pins: Collection[str] = (),
        exposure: RevealSetting | None = None,
        budget: Budget | None = None,
    ) -> Session:
        """Open the session with that id, or a new one.

        principal    owner of the session. It bounds the visible tools, and the session learns from this
                     principal's use and adds to it. A session cannot be opened for another principal
        reach        tools that the session may see among those; or give *allow* and *deny* for `Reach.parse`.
                     ``allow=[]`` allows nothing
        pins         tools that are always shown and never evicted
        exposure     how found tools reach the model, for this session; see `SessionOptions.exposure`
        budget       limits of this session; None means those of an earlier opening, or of the options

        Without a reach, a session that exists keeps its own, and a new one sees all that its principal may see. A
        session may have been evicted since you opened it last, so give the reach each time.

        Raises UnknownSessionError if the session belongs to another principal, UnknownToolError if a pin is not in
        reach, StorageError if the session cannot be read back and no reach is given, and BadSettingError for an id
        that is not text and for a text in place of a list.
        """
        work = self.conversation(
            session_id,
            principal=principal,
            reach=reach,
            allow=allow,
            deny=deny,
            pins=pins,
            exposure=exposure,
            budget=budget,
        )
        with work as conversation:
            state = conversation.state
            with self._lock:
                session = self._open.get(state)
                if session is None:
                    session = self._open[state] = Session(self, session_id)
                session.principal = principal
        return session

    def conversation(
        self,
        session_id: str,
        *,
        principal: Principal = LOCAL,
        reach: Reach | None = None,
        allow: Iterable[str] | Unset = UNSET,
        deny: Iterable[str] | Unset = UNSET,
        pins: Collection[str] = (),
        exposure: RevealSetting | None = None,
        budget: Budget | None = None,
    ) -> UnitOfWork:
        """Open a session as `session` does, for several steps: it is read once before them and written once after."""
        require_principal(principal)
        asked, names = _asked_reach(reach, allow, deny), name_list(pins, "pins")
        revealed = read_exposure(exposure)

        def new() -> SessionState:
            common = self.options.budget
            return SessionState.new(session_id, clock=self.clock, reach=asked, budget=common, principal=principal.id)

        def begin() -> Conversation:
            settle, is_known = settle_for(self), asked is not None
            state = self.sessions.get_or_create(
                session_id, new, owner=principal.id, may_replace=is_known, settle=settle
            )
            if budget is not None:
                state.keep_to(budget)
            conversation = Conversation(self, state, principal)
            conversation.admit(asked, names)
            state.exposure = revealed or state.exposure
            return conversation

        return UnitOfWork(self.sessions, begin)

    def save(self) -> None:
        """Write catalog and index to the index directory. Raises IndexStoreError, or BadSettingError without one."""
        from toolsearch_indexes.index import ToolSearchIndex

        keeper, index = self._opener.keeper, self.index
        if keeper is None or not isinstance(index, ToolSearchIndex):
            raise BadSettingError("the index cannot be saved: give the engine an index_dir")
        with self._followed.settled() as snapshot:
            self._opener.save(keeper, snapshot, index)

    def close(self) -> None:
        """Save the sessions, and close the parts that the engine itself has made. Given objects stay open."""
        self.sessions.save_all(settle_for(self))
        self._followed.close()
        if self._owns_cache:
            self._cache.close()
        if self._owns_catalog:
            self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _search(
        self,
        query: str,
        limit: int,
        least_ranked: int,
        strategy: Strategy | None,
        reach: Reach | None,
        server: str | None,
        principal: Principal | None,
        kinds: Collection[EntryKind],
    ) -> ToolSearchResponse:
        """Return at most *limit* entries. At least *least_ranked* are ranked. The total counts the ranked tools
        that fit.
        """
        require_text(query, "the query")
        limit = require_limit(limit)
        ranked = max(limit, least_ranked)
        chosen = strategy or self._strategy
        view, kinds = self.view(_bounded(reach, principal), server), _read_kinds(kinds)
        ranks_by = self.index.resolve_strategy(chosen)
        with self.telemetry.search(strategy=ranks_by, limit=limit, query=query) as span:
            favour = self._favour(query, principal)
            hits = self._with_keyword_fallback(
                lambda by: self._followed.search(
                    query,
                    limit=ranked,
                    strategy=by,
                    within=view.selection,
                    favour=favour,
                    kinds=kinds,
                    contents=view.selection_of(kinds),
                ),
                chosen,
            )
            least, find = self.options.min_score, view.find_entry
            fitting = [(hit, tool) for hit in hits if hit.score >= least and (tool := find(hit.name)) is not None]
            found = [reference_to(tool, hit.score, hit.confidence) for hit, tool in fitting[:limit]]
            span.found(reference.name for reference in found)
        logger.debug("searched by %s for at most %d tools: %d found", ranks_by, limit, len(found))
        return ToolSearchResponse(found, len(fitting))

    def _favour(self, query: str, principal: Principal | None) -> Mapping[str, float] | None:
        if self.usage is None or principal is None or not self.usage.has_evidence(principal.id):
            return None
        return self.usage.favour(principal.id, self.vocabulary.terms_of(query))

    def _with_keyword_fallback(self, ask: Callable[[Strategy], _Asked], strategy: Strategy) -> _Asked:
        """Return the result of *ask* for *strategy*. If that is "auto" and the encoder fails, ask for "keyword"."""
        try:
            return ask(strategy)
        except EncoderError as error:
            if strategy != "auto" or "keyword" not in self.index.rankings:
                raise
            self._note(f"searched by keyword only: {error}")
            return ask("keyword")

    def note(self, note: str) -> None:
        """Tell the operator, in the log and in `notes`. A repeated note is dropped."""
        if note not in self.notes:
            self._note(note)

    def _note(self, note: str) -> None:
        logger.warning(note)
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)


def _catalog_of(given: Catalog | Iterable[ToolLike]) -> Catalog:
    return given if isinstance(given, Catalog) else Catalog(given)


def _require_usable(index: ToolIndex, strategy: str, *, index_dir: object, usage: UsageLog | None) -> None:
    """Raises BadSettingError if an index of your own does not support the given options."""
    unknown = sorted(set(index.rankings) - set(RANKINGS))
    if unknown or not index.rankings:
        raise BadSettingError(f"an index ranks by some of {', '.join(RANKINGS)}, not by {index.rankings!r}")
    if strategy not in ("auto", *index.rankings):
        raise BadSettingError(f"the index cannot rank by {strategy!r}; it can by {', '.join(index.rankings)}")
    if index_dir is not None:
        raise BadSettingError("index_dir saves only the built-in index; save an index of your own yourself")
    if usage is not None:
        raise BadSettingError("learning from use needs the words of the built-in index; leave out usage, or index")


def _read_kinds(kinds: Collection[EntryKind]) -> tuple[EntryKind, ...]:
    """*kinds* in the order of `KINDS`. Raises BadSettingError for a kind that there is not, and for none."""
    names = name_list(kinds, "kinds")
    if not names or not set(names) <= set(KINDS):
        raise BadSettingError(f"cannot search for the kinds {names!r}; there are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


def _bounded(reach: Reach | None, principal: Principal | None) -> Reach:
    """Return the part of *reach* that *principal* may reach; all of it without a principal."""
    asked = _WHOLE if reach is None else _require_reach(reach)
    return asked if principal is None else asked & require_principal(principal).reach


def _asked_reach(reach: Reach | None, allow: Iterable[str] | Unset, deny: Iterable[str] | Unset) -> Reach | None:
    """Return the reach for an opening of a session, or None if it is opened without one."""
    if reach is not None:
        if allow is not UNSET or deny is not UNSET:
            raise BadSettingError("give a reach, or allow and deny, not both: one of them would be ignored")
        return _require_reach(reach)
    if allow is UNSET and deny is UNSET:
        return None
    return Reach.parse(EVERY_TOOL if allow is UNSET else allow, () if deny is UNSET else deny)


def _require_reach(reach: object) -> Reach:
    if not isinstance(reach, Reach):
        raise BadSettingError(f"reach must be a Reach, not a {type(reach).__name__}; Reach.parse makes one of rules")
    return reach
