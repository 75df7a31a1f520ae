"""The tools that a conversation sends in each request, and in the messages between requests.

In every mode but "append", a list that was handed out stays as it is, byte for byte, until the conversation goes to
another endpoint or its history is compacted. In "append" it grows. It begins anew only if the provider's cache is lost
anyway, if it has become too long, or if it may shrink and tools were dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from toolsearch.discovery.call_tools import CALL_TOOLS
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.exposure import Exposure
from toolsearch.discovery.view import View
from toolsearch.errors import BadSettingError
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.sent import OWN_TOOLS, Sent, ToolList
from toolsearch.sessions.state import SessionState
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.naming import CALL_TOOL
from toolsearch.wire.capabilities import Capabilities, Endpoint, RevealMode, capabilities_of
from toolsearch.wire.messages import ToolChangeMessage


class ListingConversation(Protocol):
    """The parts of a conversation that its tool lists need."""

    state: SessionState
    host: ConversationHost
    options: SessionOptions
    lists_shrink: bool

    @property
    def view(self) -> View: ...
    @property
    def exposure(self) -> Exposure: ...
    @property
    def named_in(self) -> str: ...

    @property
    def reads_skills(self) -> bool: ...

    def own_definitions(self) -> list[ToolDefinition]: ...
    def shown(self) -> list[Tool]: ...
    def shown_tool(self, name: str) -> Tool | None: ...
    def shown_tools(self) -> list[Tool]: ...


def next_list(conversation: ListingConversation, endpoint: Endpoint) -> ToolList:
    """As `Conversation.tool_list`."""
    known, ledger = capabilities_of(endpoint), conversation.state.sent
    sent, mode = ledger.now, mode_of(conversation, endpoint)
    _require_room(conversation, known)
    is_warm = sent.is_warm(conversation.host.clock(), _cache_s(conversation, known))
    if not sent.is_begun(endpoint, mode) or (mode == "append" and not is_warm):
        _begin(conversation, endpoint, mode, known)
        if is_warm and sent.endpoint == endpoint:  # the caller asked for another mode
            ledger.note_break()
    elif sent.deferred is None:
        ledger.defer(_deferred(conversation, endpoint, mode, sent.listed))
    if mode == "append" and is_warm and sent.is_begun(endpoint, mode):
        _append(conversation, endpoint, known)
    return ledger.tool_list()


def next_change(conversation: ListingConversation) -> ToolChangeMessage:
    """As `Conversation.tool_change`."""
    ledger, count = conversation.state.sent, conversation.view.tokens_of
    sent = ledger.now
    if sent.endpoint is None or sent.mode != "messages":
        return ToolChangeMessage()
    if capabilities_of(sent.endpoint).removals:
        return ledger.change_to(_wanted(conversation, sent), sent.visible, count)
    new = _new(conversation, sent)
    added = that_fit(conversation, sent.visible.values(), new, bounds_of(conversation, sent))
    if len(added) < len(new):  # no tool can be withdrawn to make room, so the call tool runs the others
        added.append(CALL_TOOLS[CALL_TOOL])
    return ledger.change_to(added, (), count)


def loadable_in(conversation: ListingConversation, names: Iterable[str]) -> list[str]:
    """As `Conversation.loadable`."""
    sent = conversation.state.sent.now
    shown = [name for name in dict.fromkeys(names) if conversation.shown_tool(name) is not None]
    if sent.endpoint is None or sent.mode == "append":
        return shown
    if sent.mode == "messages" and capabilities_of(sent.endpoint).removals:
        return shown
    visible, new = sent.visible, list[ToolDefinition]()
    if sent.mode == "messages":
        new = _new(conversation, sent)
    elif sent.mode == "deferred":
        deferred = sent.deferred_by_name
        new = [deferred[name] for name in shown if name in deferred and name not in visible]
    fitting = that_fit(conversation, visible.values(), new, bounds_of(conversation, sent))
    callable_by_name = {*visible, *(definition.name for definition in fitting)}
    return [name for name in shown if name in callable_by_name]


def too_many_to_defer(bound: int) -> str:
    """The note to the operator about a catalog with more tools than one request may defer."""
    return f"a request takes {bound:,} deferred tools, and the catalog has more; {CALL_TOOL} runs the others"


# Beginnings


def mode_of(conversation: ListingConversation, endpoint: Endpoint) -> RevealMode:
    """The mode of the next request to *endpoint*. It stays while the endpoint does, unless another one is asked for.

    Raises BadSettingError if the endpoint does not take the mode that is asked for.
    """
    known, sent = capabilities_of(endpoint), conversation.state.sent.now
    asked = conversation.state.exposure or conversation.options.exposure
    if asked != "auto":
        if asked not in known.modes:
            raise BadSettingError(
                f"this model does not take the exposure {asked!r}; use one of {', '.join(known.modes)}"
            )
        return asked
    return sent.mode if sent.endpoint == endpoint and sent.mode in known.modes else known.modes[0]


def _cache_s(conversation: ListingConversation, known: Capabilities) -> float:
    given = conversation.options.cache_ttl_s
    return known.cache_s if given is None else given


def _begin(conversation: ListingConversation, endpoint: Endpoint, mode: RevealMode, known: Capabilities) -> None:
    listed = _first_listed(conversation, mode, known)
    deferred = _deferred(conversation, endpoint, mode, _by_name(listed))
    if "deferred" not in known.modes:
        listed, deferred = [*listed, *deferred], []
    now_s, named_in = conversation.host.clock(), conversation.named_in
    conversation.state.sent.begin(endpoint, mode, now_s, listed, deferred, named_in=named_in)


def _first_listed(conversation: ListingConversation, mode: RevealMode, known: Capabilities) -> list[ToolDefinition]:
    """Our own tools and the tools discovered so far: pins, and tools that the conversation was told it can call."""
    shown = _definitions(conversation.shown())
    bounds = _bounds(conversation, known)
    if _is_too_much(conversation, _by_name(shown), bounds):
        conversation.state.discovered.keep_within(bounds)
        shown = _definitions(conversation.shown())
    if mode in ("append", "messages"):
        return shown
    always = [definition for definition in shown if definition.name not in OWN_TOOLS]
    return [*conversation.own_definitions(), CALL_TOOLS[CALL_TOOL], *always]


def _deferred(
    conversation: ListingConversation, endpoint: Endpoint, mode: RevealMode, listed: Collection[str]
) -> list[ToolDefinition]:
    """The deferred tools by name, without *listed*: all tools in reach if the mode defers them, and tools that history
    refers to.

    Anthropic's API refuses a request whose messages refer to a tool that is not in its list.
    """
    sent, found = conversation.state.sent.now, dict[str, ToolDefinition]()
    if mode == "deferred" and conversation.exposure.is_searched:
        others = [
            definition for definition in _definitions(conversation.shown_tools()) if definition.name not in listed
        ]
        bound = capabilities_of(endpoint).max_deferred
        found = _by_name(others[:bound])
        if bound is not None and len(others) > bound:
            conversation.host.note(too_many_to_defer(bound))
    if endpoint.wire_format == "anthropic":
        found = {name: _kept(conversation, name, known) for name, known in sent.all_referred().items()} | found
    if sent.is_begun(endpoint, mode):
        found |= sent.revealed  # revealed tools stay as they were sent, even if they have changed
    return [found[name] for name in sorted(found) if name not in listed]


def _kept(conversation: ListingConversation, name: str, known: ToolDefinition) -> ToolDefinition:
    """The definition of a tool that history refers to: as it is now, or as it was last known."""
    tool = conversation.shown_tool(name)
    return tool.definition if tool is not None else known


# Growth


def _append(conversation: ListingConversation, endpoint: Endpoint, known: Capabilities) -> None:
    """Continue a list that may be in the provider's cache. Changes that break the cache are counted."""
    ledger, wanted = conversation.state.sent, _definitions(conversation.shown())
    before, by_name = ledger.now.listed, _by_name(wanted)
    has_less = conversation.lists_shrink and not before.keys() <= by_name.keys()
    if not has_less and not _is_too_much(conversation, {**before, **by_name}, _bounds(conversation, known)):
        if ledger.append(wanted, named_in=conversation.named_in):
            ledger.note_break()
        return
    _begin(conversation, endpoint, "append", known)
    if list(ledger.now.listed.items()) != list(before.items()):
        ledger.note_break()


def _wanted(conversation: ListingConversation, sent: Sent) -> list[ToolDefinition]:
    """The tools that the model should have, for APIs whose messages can also withdraw tools."""
    wanted = _definitions(conversation.shown())
    if sent.is_whole:  # a list of the whole catalog stays, although nobody has searched for its tools
        stays = [tool for name in sent.visible if (tool := conversation.shown_tool(name)) is not None]
        wanted = list({**_by_name(_definitions(stays)), **_by_name(wanted)}.values())
    bounds = bounds_of(conversation, sent)
    if _is_too_much(conversation, {**sent.visible, **_by_name(wanted)}, bounds):
        conversation.state.discovered.keep_within(bounds)
        wanted = _definitions(conversation.shown())
    return wanted


def _new(conversation: ListingConversation, sent: Sent) -> list[ToolDefinition]:
    visible = sent.visible
    return [definition for definition in _definitions(conversation.shown()) if definition.name not in visible]


def new_that_fit(conversation: ListingConversation, tools: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """The first of *tools* that the model has not and that fit into the budget, so that no tool has to go for them."""
    sent = conversation.state.sent.now
    present = {**_by_name(_definitions(conversation.shown())), **sent.visible}
    new = [definition for definition in tools if definition.name not in present]
    for bounds in (conversation.options.budget, bounds_of(conversation, sent)):
        new = that_fit(conversation, present.values(), new, bounds)
    return new


def that_fit(
    conversation: ListingConversation, present: Iterable[ToolDefinition], new: Iterable[ToolDefinition], bounds: Budget
) -> list[ToolDefinition]:
    """The first of *new* that fit beside the *present* tools of the model."""
    count = conversation.view.tokens_of
    bounded = [definition for definition in present if definition.name not in OWN_TOOLS]
    number, tokens, fitting = len(bounded), sum(map(count, bounded)), list[ToolDefinition]()
    for definition in new:
        if definition.name not in OWN_TOOLS:
            number, tokens = number + 1, tokens + count(definition)
            if bounds.is_crossed_by(number, tokens):
                break
        fitting.append(definition)
    return fitting


def _bounds(conversation: ListingConversation, known: Capabilities) -> Budget:
    """The bounds of the found tools in a list: the budget, and the API's maximum without our own tools."""
    bounds = conversation.options.budget.sent
    if known.max_tools is None:
        return bounds
    room = known.max_tools - len(OWN_TOOLS) + (not conversation.reads_skills)
    return replace(bounds, max_tools=room if bounds.max_tools is None else min(bounds.max_tools, room))


def bounds_of(conversation: ListingConversation, sent: Sent) -> Budget:
    """As `_bounds`, of the model that *sent* went to."""
    return _bounds(conversation, capabilities_of(sent.endpoint or Endpoint("")))


def _require_room(conversation: ListingConversation, known: Capabilities) -> None:
    """Raise BadSettingError if a catalog should be shown whole, but the model's API does not accept so many tools."""
    if conversation.exposure.is_searched or known.max_tools is None:
        return
    if (tools := len(conversation.shown())) > known.max_tools:
        raise BadSettingError(
            f"pass_through shows all {tools:,} tools of this catalog, but the model's API takes {known.max_tools:,}; "
            "lower pass_through.max_tools"
        )


def _is_too_much(conversation: ListingConversation, definitions: Mapping[str, ToolDefinition], bounds: Budget) -> bool:
    """Whether *definitions* exceed the bounds of a list. A catalog that is shown whole has no bounds."""
    if not conversation.exposure.is_searched:
        return False
    bounded = [definition for name, definition in definitions.items() if name not in OWN_TOOLS]
    tokens = sum(map(conversation.view.tokens_of, bounded))
    return bounds.is_crossed_by(len(bounded), tokens)


def _definitions(tools: Iterable[Tool]) -> list[ToolDefinition]:
    return [tool.definition for tool in tools]


def _by_name(definitions: Iterable[ToolDefinition]) -> dict[str, ToolDefinition]:
    return {definition.name: definition for definition in definitions}
