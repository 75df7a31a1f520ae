"""Which form a client's list of tools has: every tool as it is, or the gateway's own tools with a search among them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.view import View
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.own_tools import OwnTools

_MOST_SESSIONS = 10_000
_MOST_REACHES = 256


class ListForms:
    """Remembers the form of each client's list. It stays for a session: a client that has listed the search tool is
    never told that all tools are in its list. Safe to share between threads.

    *make* makes the gateway's own tools for a view. They name its servers, and are made anew when one comes or goes.
    """

    def __init__(self, make: Callable[[View], OwnTools]) -> None:
        self._make = make
        self._given: OwnTools | None = None
        self._made: OrderedDict[Reach, tuple[tuple[str, ...], OwnTools]] = OrderedDict()
        self._of_session: OrderedDict[tuple[Principal, str], OwnTools | None] = OrderedDict()
        self._lock = threading.Lock()

    def give(self, own: OwnTools) -> None:
        """Say that the one client there is has been listed *own*."""
        self._given = own

    def form(self, caller: Caller, view: View, is_whole: Callable[[], bool]) -> OwnTools | None:
        """The gateway's own tools, as *caller* lists them; None if it lists every tool as it is."""
        if self._given is not None:
            return self._given
        key = (caller.principal, caller.session_key or "")
        if key in self._of_session:
            return self._of_session[key]
        form = None if is_whole() else self.own(caller.principal.reach, view)
        if caller.session_key is not None:
            with self._lock:
                form = self._of_session.setdefault(key, form)
                if len(self._of_session) > _MOST_SESSIONS:
                    self._of_session.popitem(last=False)
        return form

    def forget(self, caller: Caller) -> None:
        with self._lock:
            self._of_session.pop((caller.principal, caller.session_key or ""), None)

    def own(self, reach: Reach, view: View) -> OwnTools:
        """The gateway's own tools for the callers with *reach*, who see *view*."""
        made = self._made.get(reach)
        if made is None or made[0] != view.servers:
            made = view.servers, self._make(view)
            with self._lock:
                self._made[reach] = made
                if len(self._made) > _MOST_REACHES:
                    self._made.popitem(last=False)
        return made[1]
