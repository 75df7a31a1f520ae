"""Memory of the replies that model APIs store, so that requests can continue them by their ids."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.carried import CarriedCall
from toolsearch.wire.proxied import Stored
from toolsearch.wire.proxied_parts import compact

_MOST_BYTES: Final = 64 * 2**20  # of all replies together
_LARGEST: Final = 2**20  # bytes of one reply
_LONGEST_ID: Final = 256  # characters; the ids of the APIs have 29 to 53
_BESIDE: Final = 256  # bytes that Python takes for each reply beside its text


@dataclass(frozen=True, slots=True)
class Continued:
    """A reply that the API stores, and what the model was sent of tools with it.

    mode      how found tools reached the model
    listed    names of the tools in the list, in its order
    revealed  names of the tools that were held back, and that the model was shown since
    """

    stored: Stored
    mode: RevealMode
    listed: Sequence[str]
    revealed: Sequence[str]


class KnownReplies:
    """The replies of all tenants, within *most_bytes*. If there are more, the tenant with the most bytes loses the
    reply that it used longest ago, so no tenant displaces the replies of one that has less.

    A reply is kept as JSON, because an object of Python does not tell how many bytes it takes.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: defaultdict[str, OrderedDict[str, str]] = defaultdict(OrderedDict)  # least recently used first
        self._bytes: Counter[str] = Counter()  # by tenant

    def of(self, tenant: str = "", *caller: str) -> CallersReplies:
        """The replies of one *caller* of *tenant*, who is given in any number of words."""
        return CallersReplies(self, tenant, caller)

    def get(self, tenant: str, key: str) -> str | None:
        kept = self._kept[tenant]
        if key in kept:
            kept.move_to_end(key)
        return kept.get(key)

    def put(self, tenant: str, key: str, text: str) -> None:
        """Keep *text* in place of what there was for *key*. A text that is too large is not kept."""
        kept = self._kept[tenant]
        self._bytes[tenant] -= _size(key, kept.pop(key, None))
        if _size(key, text) > _LARGEST:
            return
        kept[key] = text
        self._bytes[tenant] += _size(key, text)
        while self._bytes.total() > self._most_bytes:
            ((most, _),) = self._bytes.most_common(1)
            self._bytes[most] -= _size(*self._kept[most].popitem(last=False))


@dataclass(frozen=True, slots=True)
class CallersReplies:
    """The replies of one caller, whom nobody else can continue."""

    known: KnownReplies
    tenant: str
    caller: tuple[str, ...]

    def get(self, reply_id: str) -> Continued | None:
        """The reply with the id that the client got; None if it is not known, or not any more."""
        text = self.known.get(self.tenant, self._key(reply_id))
        return None if text is None else _read(text)

    def put(self, reply: Continued) -> None:
        """Keep *reply*, unless it or its id is too large."""
        stored = reply.stored
        if len(stored.given_id) <= _LONGEST_ID:
            text = compact([stored.given_id, stored.id, [*stored.unanswered], reply.mode, reply.listed, reply.revealed])
            self.known.put(self.tenant, self._key(stored.given_id), text)

    def _key(self, reply_id: str) -> str:
        return compact([*self.caller, reply_id])


def _size(key: str, text: str | None) -> int:
    return 0 if text is None else len(key) + len(text) + _BESIDE  # both are ASCII


def _read(text: str) -> Continued:
    given_id, last_id, unanswered, mode, listed, revealed = json.loads(text)
    return Continued(Stored(given_id, last_id, [CarriedCall(*call) for call in unanswered]), mode, listed, revealed)
