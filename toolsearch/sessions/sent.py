"""Records the tools that a conversation's model was sent: its list, and the additions of messages and answers.

Providers cache a prompt by its prefix. The tool list is near the front, and some providers bind a model's thoughts to
it. So the tools are kept here exactly as they were sent, even if the catalog changes. Any other list begins anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, get_args

from toolsearch.access.reach import Reach
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, TOOL_NAME
from toolsearch.wire.capabilities import Endpoint, RevealMode
from toolsearch.wire.messages import ToolChangeMessage

OWN_TOOLS = (TOOL_NAME, READ_SKILL, CALL_TOOL)  # never withdrawn, and exempt from the budget
Count = Callable[[ToolDefinition], int]  # counts the tokens of a definition


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools of one request, in order. *deferred* tools follow *listed* ones, and are marked."""

    mode: RevealMode
    listed: tuple[ToolDefinition, ...]
    deferred: tuple[ToolDefinition, ...] = ()

    def within(self, reach: Reach, search: ToolDefinition) -> ToolList:
        """The part of the list that a caller with *reach* may read, with that caller's *search* tool."""
        listed = tuple(search if each.name == TOOL_NAME else each for each in self.listed)
        if reach.is_everything:
            return replace(self, listed=listed)
        listed = tuple(each for each in listed if each.name in OWN_TOOLS or reach.allows(each))
        return ToolList(self.mode, listed, tuple(filter(reach.allows, self.deferred)))


@dataclass(frozen=True, slots=True)
class Sent:
    """The record of what was sent. It is immutable: each change makes a new one.

    endpoint         the destination of the list; None before the first request, and after the history was compacted
    begun_s          when the list began; it identifies the list
    listed           by name, in order, as they were sent
    named_in         the reach, as text, whose servers the listed search tool names; "" if it names none
    deferred         in order; None if they have to be read from the catalog again, since they are not stored
    revealed         by messages and answers since the list began, by name, in order, as they were sent
    removed          names that messages have withdrawn
    answered         names whose definitions the model has read in answers, so that it runs them by the call tool
    referred         tools that answers under earlier lists refer to
    left             names that the model was sent before and is not any more, until the next answer says so
    revealed_tokens  tokens of all revealed definitions, since messages and answers stay in the conversation
    requested_s      when the last request with this list was made
    request_tokens   tool tokens of that request
    prompt_tokens    tokens of the last whole request, as the provider counted them; 0 if unknown
    breaks           how often a list was sent that differs from the one before while its cache may have been warm
    break_tokens     known tokens that the provider had to read again because of these
    history_cuts     how often a list differed because the messages that had revealed its tools were dropped
    """

    endpoint: Endpoint | None = None
    mode: RevealMode = "append"
    begun_s: float = 0.0
    listed: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    named_in: str = ""
    deferred: tuple[ToolDefinition, ...] | None = ()
    revealed: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    removed: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    referred: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    left: tuple[str, ...] = ()
    revealed_tokens: int = 0
    requested_s: float | None = None
    request_tokens: int = 0
    prompt_tokens: int = 0
    breaks: int = 0
    break_tokens: int = 0
    history_cuts: int = 0

    @property
    def deferred_by_name(self) -> dict[str, ToolDefinition]:
        """The deferred tools that answers may refer to."""
        return {definition.name: definition for definition in self.deferred or ()}

    @property
    def visible(self) -> dict[str, ToolDefinition]:
        """The tools that the model can call by name, as they were sent, in its order."""
        both = {**self.listed, **self.revealed}
        return {name: definition for name, definition in both.items() if name not in self.removed}

    def __contains__(self, name: object) -> bool:
        """Whether the tool is in the list, deferred or not."""
        return name in self.listed or any(each.name == name for each in self.deferred or ())

    def has_shown(self, name: str) -> bool:
        """Whether the model has read the definition of *name*, which was not withdrawn since."""
        return name in self.visible or name in self.answered

    def has_sent(self, name: str) -> bool:
        """Whether the conversation contains the name in its list, a message or an answer."""
        return name in self.listed or name in self.revealed or name in self.answered or name in self.referred

    @property
    def is_whole(self) -> bool:
        """Whether the list began with all tools, so that it needed no search tool."""
        return self.endpoint is not None and TOOL_NAME not in self.listed

    def is_begun(self, endpoint: Endpoint, mode: RevealMode) -> bool:
        """Whether there is a list for this endpoint and mode, which the next request must continue."""
        return self.endpoint == endpoint and self.mode == mode

    def is_warm(self, now_s: float, cache_s: float) -> bool:
        """Whether the provider may still have the last request in its cache. The clock may have been set back
        meanwhile.
        """
        return self.requested_s is not None and abs(now_s - self.requested_s) < cache_s

    def all_referred(self) -> dict[str, ToolDefinition]:
        """The tools that answers in the conversation refer to by name, as they were last known."""
        return {**self.referred, **(self.revealed if self.mode == "deferred" else {})}


class SentTools:
    """Holds a `Sent` and replaces it at each change. Safe to share between threads."""

    __slots__ = ("_lock", "_now")

    def __init__(self, now: Sent | None = None) -> None:
        self._lock = threading.Lock()
        self._now = now or Sent()

    @property
    def now(self) -> Sent:
        return self._now

    @now.setter
    def now(self, sent: Sent) -> None:
        with self._lock:
            self._now = sent

    def begin(
        self,
        endpoint: Endpoint,
        mode: RevealMode,
        now_s: float,
        listed: Iterable[ToolDefinition],
        deferred: Iterable[ToolDefinition] = (),
        *,
        named_in: str = "",
    ) -> None:
        """Start a new list: of a new conversation, for another model, or where nothing is lost by it."""
        with self._lock:
            before = self._now
            by_name = {definition.name: definition for definition in listed}
            gone = [name for name in before.visible if name not in by_name and name not in OWN_TOOLS]
            self._now = replace(
                before,
                endpoint=endpoint,
                mode=mode,
                begun_s=now_s,
                listed=by_name,
                named_in=named_in,
                deferred=tuple(deferred),
                revealed={},
                removed=frozenset(),
                answered=frozenset(),
                referred=before.all_referred(),
                left=_in_order(before.left, gone),
                revealed_tokens=0,
                requested_s=None,
            )

    def append(self, definitions: Iterable[ToolDefinition], *, named_in: str = "") -> bool:
        """Append the definitions that the list does not have, and replace changed ones. Return whether the list has
        changed. *named_in* belongs to the search tool, if it is among them.
        """
        with self._lock:
            before = self._now.listed
            other = {each.name: each for each in definitions if before.get(each.name) != each}
            if other:  # an equal definition may be written in another order, so the one that was sent stays
                named_in = named_in if TOOL_NAME in other else self._now.named_in
                self._now = replace(self._now, listed={**before, **other}, named_in=named_in)
            return bool(other)

    def defer(self, definitions: Iterable[ToolDefinition]) -> None:
        """Take over the deferred tools of a list that was restored without them."""
        with self._lock:
            self._now = replace(self._now, deferred=tuple(definitions))

    def tool_list(self) -> ToolList:
        now = self._now
        return ToolList(now.mode, tuple(now.listed.values()), now.deferred or ())

    def note_answer(self, names: Iterable[str], count: Count, *, told: Iterable[str] = ()) -> None:
        """Note that an answer refers to the deferred tools of *names*, and that it contains the definitions of
        *told*.
        """
        with self._lock:
            now, wanted = self._now, frozenset(names)
            new = [each for each in now.deferred or () if each.name in wanted and each.name not in now.revealed]
            self._now = replace(_with_revealed(now, new, count), answered=now.answered.union(told))

    def relist(self, names: Iterable[str]) -> bool:
        """Move *names* to the end of the list, since no message reveals them; return whether it is another list now."""
        with self._lock:
            now = self._now
            known = {**now.deferred_by_name, **now.revealed}
            moved = {name: known[name] for name in names if name in known and name not in now.listed}
            self._now = replace(
                now,
                listed={**now.listed, **moved},
                deferred=tuple(each for each in now.deferred or () if each.name not in moved),
                revealed={name: each for name, each in now.revealed.items() if name not in moved},
            )
            return bool(moved)

    def note_history_cut(self) -> None:
        with self._lock:
            self._now = replace(self._now, history_cuts=self._now.history_cuts + 1)

    def change_to(
        self, wanted: Sequence[ToolDefinition], removable: Collection[str], count: Count
    ) -> ToolChangeMessage:
        """Return the change that gives the model the *wanted* tools. It counts as said from here on.

        Unwanted or changed tools are withdrawn only if they are *removable*. A changed definition is withdrawn first,
        and added again with the next change.
        """
        with self._lock:
            visible, kept = self._now.visible, {definition.name: definition for definition in wanted}
            added = [definition for definition in wanted if definition.name not in visible]
            removed = [
                name
                for name, sent in visible.items()
                if name in removable and name not in OWN_TOOLS and kept.get(name) != sent
            ]
            now = _with_revealed(self._now, added, count)
            self._now = replace(
                now,
                removed=(now.removed - {each.name for each in added}) | frozenset(removed),
                left=_in_order(now.left, [name for name in removed if name not in kept]),
            )
            return ToolChangeMessage(tuple(added), tuple(removed))

    def take_left(self) -> tuple[str, ...]:
        """The names of the tools that have left since this was asked last, and that have not come back."""
        with self._lock:
            visible = self._now.visible
            left = tuple(name for name in self._now.left if name not in visible)
            self._now = replace(self._now, left=())
            return left

    def compact(self) -> None:
        """Let the next list begin anew, since the conversation does not contain the earlier ones any more."""
        with self._lock:
            now = self._now
            self._now = replace(
                now,
                endpoint=None,
                listed={},
                named_in="",
                deferred=(),
                revealed={},
                removed=frozenset(),
                answered=frozenset(),
                referred=now.all_referred(),
                left=(),
                revealed_tokens=0,
                requested_s=None,
                request_tokens=0,
                prompt_tokens=0,
            )

    def note_request(self, now_s: float, tokens: int) -> None:
        with self._lock:
            self._now = replace(self._now, requested_s=now_s, request_tokens=tokens)

    def note_prompt(self, tokens: int) -> None:
        """Note how long the last request was, by the provider's count."""
        with self._lock:
            self._now = replace(self._now, prompt_tokens=tokens)

    def note_break(self) -> None:
        """Count that the list is another one, although the provider may have had it in its cache."""
        with self._lock:
            now = self._now
            tokens = now.break_tokens + max(now.prompt_tokens, now.request_tokens)
            self._now = replace(now, breaks=now.breaks + 1, break_tokens=tokens)


def _with_revealed(sent: Sent, definitions: Collection[ToolDefinition], count: Count) -> Sent:
    new = {definition.name: definition for definition in definitions}
    tokens = sum(map(count, new.values()))
    return replace(sent, revealed={**sent.revealed, **new}, revealed_tokens=sent.revealed_tokens + tokens)


def _in_order(names: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*names, *more]))


_OPTIONAL = ("description", "title", "output_schema", "annotations", "server")

_FIGURES = (
    "begun_s", "requested_s", "request_tokens", "prompt_tokens", "revealed_tokens", "breaks", "break_tokens",
    "history_cuts",
)  # fmt: skip


def write_sent(sent: Sent) -> dict[str, Any]:
    return {
        "endpoint": list(astuple(sent.endpoint)) if sent.endpoint else None,
        "mode": sent.mode,
        "listed": _written(sent.listed.values()),
        "named_in": sent.named_in,
        "revealed": _written(sent.revealed.values()),
        "removed": sorted(sent.removed),
        "answered": sorted(sent.answered),
        "referred": {name: _write(known) for name, known in sent.referred.items()},
        "left": list(sent.left),
        **{name: getattr(sent, name) for name in _FIGURES},
    }


def read_sent(document: Mapping[str, Any]) -> Sent:
    """Read back the result of `write_sent`. Raises LookupError, TypeError or ValueError for any other document."""
    mode: RevealMode = document["mode"]
    if mode not in get_args(RevealMode):
        raise ValueError(f"no such mode: {mode!r}")
    endpoint: list[Any] | None = document["endpoint"]
    requested_s = document["requested_s"]
    return Sent(
        endpoint=Endpoint(*endpoint) if endpoint is not None else None,
        mode=mode,
        begun_s=float(document["begun_s"]),
        listed=_by_name(document["listed"]),
        named_in=str(document["named_in"]),
        deferred=None if mode == "deferred" else (),
        revealed=_by_name(document["revealed"]),
        removed=frozenset(document["removed"]),
        answered=frozenset(document["answered"]),
        referred={name: _read(known) for name, known in document["referred"].items()},
        left=tuple(document["left"]),
        revealed_tokens=int(document["revealed_tokens"]),
        requested_s=None if requested_s is None else float(requested_s),
        request_tokens=int(document["request_tokens"]),
        prompt_tokens=int(document["prompt_tokens"]),
        breaks=int(document["breaks"]),
        break_tokens=int(document["break_tokens"]),
        history_cuts=int(document["history_cuts"]),
    )


def _written(definitions: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    return list(map(_write, definitions))


def _write(definition: ToolDefinition) -> dict[str, Any]:
    """All that is not as it is by default. A schema is written in any case: equal ones may have another order."""
    schema: dict[str, Any] = {"name": definition.name, "input_schema": definition.input_schema}
    others = {name: getattr(definition, name) for name in _OPTIONAL}
    tags = {"tags": list(definition.tags)} if definition.tags else {}
    return {**schema, **{name: value for name, value in others.items() if value}, **tags}


def _by_name(definitions: Iterable[Mapping[str, Any]]) -> dict[str, ToolDefinition]:
    return {definition.name: definition for definition in map(_read, definitions)}


def _read(fields: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(**fields)
