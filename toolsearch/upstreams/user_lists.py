"""What each user of a server is listed by it, and what of that all of them are shown as one list.

A definition is shown to those users whom the server lists the very same. Users who have not been listed anything yet
are shown the tools that all others are listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Listing, read_listing
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, ListOf, without_modification


class Key(NamedTuple):
    """An entry of a list: the list, by its key in a page, and the server's own name of the entry."""

    list: str
    name: str

    @classmethod
    def of(cls, which: ListOf, name: str) -> Key:
        return cls(which.key, name)


@dataclass(frozen=True, slots=True)
class _Entry:
    raw: JsonObject
    digest: str


@dataclass(frozen=True, slots=True)
class _Listed:
    """What one user was listed. *rest* is the listing without its entries, *number* grows with each connection."""

    rest: Listing
    entries: Mapping[Key, _Entry]
    number: int
    is_live: bool = True


@dataclass(frozen=True, slots=True)
class _State:
    """*shown* is all that is shown to somebody; *first* are the tools that everybody is shown. *rest* is what the
    listing of all this says beside its entries.
    """

    users: Mapping[str, _Listed] = field(default_factory=dict[str, _Listed])
    shown: Mapping[Key, _Entry] = field(default_factory=dict[Key, _Entry])
    first: frozenset[Key] = frozenset()
    rest: Listing | None = None


class UserLists:
    """The lists of the users of one server. May be read from any thread, and is changed in one."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._state = _State()
        self._numbers = 0
        self._visible: dict[str, tuple[_State, frozenset[Key]]] = {}  # what was found last, and in which state

    def take_kept(self, listing: Listing) -> Listing | None:
        """The tools of *listing*, kept from an earlier run. Everybody is shown them until somebody is listed; None if
        that has happened.
        """
        if self._state.users:
            return None
        kept = Listing(self._server, listing.tools, listing.refused, about=listing.about)
        entries = _entries(kept)
        self._state = _State(shown=entries, first=frozenset(entries), rest=_rest(kept))
        return kept

    def with_(self, owner: str, listing: Listing) -> tuple[Listing, Callable[[], bool]]:
        """What is to be judged if *owner* was listed *listing* over a connection that lasts, and what has it shown once
        that is done, and says whether somebody who was listed something before sees something else now.

        If the server defines an entry in several ways, the definition counts that it lists to the user who has been
        connected for the longest time, or else, among users without a connection, was listed last.
        """
        before = self._state.users.get(owner)
        if before is None or not before.is_live:
            self._numbers += 1
        number = before.number if before is not None and before.is_live else self._numbers
        new = _Listed(_rest(listing), self._shared(_entries(listing)), number)
        order = sorted(
            {**self._state.users, owner: new}.values(),
            key=lambda each: (not each.is_live, each.number if each.is_live else -each.number),
        )
        shown: dict[Key, _Entry] = {}
        for each in order:
            for key, entry in each.entries.items():
                shown.setdefault(key, entry)
        first = frozenset(
            key for key in shown if key.list == TOOLS.key and all(_has(each, key, shown) for each in order)
        )

        def show() -> bool:
            was, self._state = self._state, _State({**self._state.users, owner: new}, shown, first, order[0].rest)
            is_other = before is not None and before.entries != new.entries
            return is_other or (was.shown, was.first) != (shown, first)

        return _listing(order[0].rest, shown), show

    @property
    def first(self) -> Listing:
        """The tools that everybody is shown."""
        state = self._state
        shown = {key: entry for key, entry in state.shown.items() if key in state.first}
        return _listing(state.rest or Listing(self._server, ()), shown)

    def ended(self, owner: str) -> None:
        """The connection of *owner* has ended: what it was listed counts after what is listed to others."""
        if (listed := self._state.users.get(owner)) is not None:
            self._state = replace(self._state, users={**self._state.users, owner: replace(listed, is_live=False)})

    def forget(self, owner: str) -> None:
        """Nothing is known any more of what *owner* is listed."""
        self._visible.pop(owner, None)
        self._state = replace(self._state, users={key: each for key, each in self._state.users.items() if key != owner})

    def visible(self, owner: str, *, may_see_first: bool) -> frozenset[Key]:
        """The entries that *owner* is shown. With *may_see_first*, one who was not listed anything yet is shown the
        tools that all others are listed.
        """
        state = self._state
        if (listed := state.users.get(owner)) is None:
            return state.first if may_see_first else frozenset()
        found = self._visible.get(owner)
        if found is None or found[0] is not state:
            keys = (key for key, entry in listed.entries.items() if _is_same(entry, state.shown.get(key)))
            found = self._visible[owner] = state, frozenset(keys)
        return found[1]

    def may_ask(self, owner: str, key: Key) -> bool:
        """Whether a request of *owner* about *key* may be sent: not if others are shown an entry there that *owner* is
        not listed in the same way. The server itself decides about what nobody is listed.
        """
        state = self._state
        if (listed := state.users.get(owner)) is None:
            return False
        shown, theirs = state.shown.get(key), listed.entries.get(key)
        return key.list != TOOLS.key if shown is None and theirs is None else _is_same(theirs, shown)

    @property
    def differing(self) -> Mapping[Key, int]:
        """How many users are listed an entry in another way than it is shown, by entry."""
        state, found = self._state, dict[Key, int]()
        for listed in state.users.values():
            for key, entry in listed.entries.items():
                if not _is_same(entry, state.shown.get(key)):
                    found[key] = found.get(key, 0) + 1
        return found

    def _shared(self, entries: Mapping[Key, _Entry]) -> dict[Key, _Entry]:
        """*entries*, with the very objects that are shown already where they are the same: many users have one list."""
        shown = self._state.shown
        return {key: shown[key] if _is_same(entry, shown.get(key)) else entry for key, entry in entries.items()}


def _is_same(one: _Entry | None, other: _Entry | None) -> bool:
    return one is not None and other is not None and one.digest == other.digest


def _has(listed: _Listed, key: Key, shown: Mapping[Key, _Entry]) -> bool:
    return _is_same(listed.entries.get(key), shown[key])


def _entries(listing: Listing) -> dict[Key, _Entry]:
    return {
        Key.of(which, name): _Entry(raw, _digest(which, raw))
        for which, raw in _raws(listing)
        if (name := which.name_of(raw)) is not None
    }


def _raws(listing: Listing) -> Iterator[tuple[ListOf, JsonObject]]:
    yield from ((TOOLS, tool.origin.raw) for tool in listing.tools if tool.origin is not None)
    yield from ((PROMPTS, raw) for raw in listing.prompts)
    yield from ((RESOURCES, raw) for raw in listing.resources)
    yield from ((TEMPLATES, raw) for raw in listing.resource_templates)
    yield from ((SKILLS, raw) for raw in listing.skills)


def _digest(which: ListOf, raw: JsonObject) -> str:
    steady = without_modification(raw) if which is RESOURCES else raw
    return hashlib.sha256(json.dumps(steady, sort_keys=True).encode()).hexdigest()


def _rest(listing: Listing) -> Listing:
    """*listing* without its entries, and without the instructions: they are written for one user, and nobody could tell
    whether another one may read them.
    """
    none: tuple[JsonObject, ...] = ()
    return replace(
        listing, tools=(), prompts=none, resources=none, resource_templates=none, skills=none, instructions=""
    )


def _listing(rest: Listing, shown: Mapping[Key, _Entry]) -> Listing:
    """All of *shown* as one list."""

    def of(which: ListOf) -> tuple[JsonObject, ...]:
        return tuple(entry.raw for key, entry in shown.items() if key.list == which.key)

    tools, refused = read_listing(rest.server, of(TOOLS), rest.server)
    return replace(
        rest,
        tools=tuple(tools),
        refused=(*rest.refused, *refused),
        prompts=of(PROMPTS),
        resources=of(RESOURCES),
        resource_templates=of(TEMPLATES),
        skills=of(SKILLS),
    )
