"""How a store is doing, as whoever runs a service wants to know."""

from __future__ import annotations

from typing import NamedTuple


class StoreLoad(NamedTuple):
    """What one process knows of it, without asking it.

    is_there     whether it could be used the last time
    times_away   how often it could not, since the start
    connections  that are open, and how many of them are *busy*
    waiting      threads that wait for a connection
    """

    is_there: bool = True
    times_away: int = 0
    connections: int = 1
    busy: int = 0
    waiting: int = 0
