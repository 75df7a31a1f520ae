"""Remembers how a client's session began, and which requests wait, so that it can go on with another process.

Nothing heavy may be imported here.
"""

from __future__ import annotations

import json

from toolsearch.documents.json_values import as_object, object_in
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.relayed import failed, is_request, line_of, notification, subscription_of, unanswered

_INITIALIZE = "initialize"
_INITIALIZED = "notifications/initialized"
_CANCELLED = "notifications/cancelled"
_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_HEAD = b'{"jsonrpc":"2.0","id":'
_DECODER = json.JSONDecoder()
_LONGEST_ID = 24  # longer ids are texts, and their lines are read whole
_REPLAYED = "toolsearch replay"  # the id of our own request, whose answer the client does not see
_LOST = "The gateway's background process ended during this request. The request may have run, and is not sent again."


class ClientSession:
    """The session of one client, as its lines tell: how it began, and which requests wait for answers."""

    def __init__(self) -> None:
        self._opening: dict[str, JsonObject] = {}  # messages that the next process is sent again, in their order
        self._listed: dict[str, None] = {}  # methods of the lists that the client has asked for
        self._requests: dict[str, JsonObject] = {}  # the client's requests without an answer: id -> id and method
        self._questions: dict[str, Json] = {}  # the gateway's requests: id for the client -> id of the gateway
        self._acknowledged: set[str] = set()  # ids of the subscriptions that were acknowledged to the client
        self._held: dict[str, bytes] = {}  # requests for the next process: id -> line
        self._generation = 0

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits that is not sent to the next process."""
        return any(not _is_said_again(each) for each in self._requests.values())

    def passed_to_gateway(self, line: bytes) -> bytes | None:
        """Note a line of the client. Returns the line to send, if there is one."""
        message = object_in(line)
        method, id_ = message.get("method"), message.get("id")
        if method is None:
            return self._answer(line, message) if "id" in message else line
        if "id" in message:
            self._requests[_key(id_)] = {"id": id_, "method": method}
        self._note(str(method), message, as_object(message.get("params")) or {})
        return line

    def _note(self, method: str, message: JsonObject, params: JsonObject) -> None:
        if method in {_INITIALIZE, _INITIALIZED, "logging/setLevel"}:
            self._opening[method] = message
        elif method == _LISTEN:
            self._opening[_LISTEN + _key(message.get("id"))] = message
        elif method == "resources/subscribe":
            self._opening[f"resource {params.get('uri')}"] = message
        elif method == "resources/unsubscribe":
            self._opening.pop(f"resource {params.get('uri')}", None)
        elif method == _CANCELLED:
            self._ended(_key(params.get("requestId")))
        elif method.endswith("/list"):
            self._listed[method] = None

    def _answer(self, line: bytes, message: JsonObject) -> bytes | None:
        """The client's answer to a question; None if the process that asked has ended."""
        key = _key(message.get("id"))
        if key not in self._questions:
            return None
        own = self._questions.pop(key)
        return line if own == message.get("id") else line_of({**message, "id": own})

    def passed_to_client(self, line: bytes) -> bytes | None:
        """Note a line of the gateway. Returns the line to send, if there is one."""
        message = _head_of_answer(line) or object_in(line)
        id_, method = message.get("id"), message.get("method")
        if method is None:
            if id_ == _REPLAYED:
                return None
            self._ended(_key(id_))
        elif "id" in message:
            return self._asked(line, message)
        elif method == _ACKNOWLEDGED:
            key = _key(subscription_of(message))
            if key in self._acknowledged:
                return None
            self._acknowledged.add(key)
        return line

    def _asked(self, line: bytes, message: JsonObject) -> bytes:
        """A question of the gateway, with an id that no earlier process has used."""
        own = message["id"]
        id_ = own if not self._generation else f"{self._generation}/{own}"
        self._questions[_key(id_)] = own
        return line if id_ == own else line_of({**message, "id": id_})

    def _ended(self, key: str) -> None:
        self._requests.pop(key, None)
        self._held.pop(key, None)
        self._opening.pop(_LISTEN + key, None)

    @property
    def is_holding(self) -> bool:
        """Whether a request is held for the next process."""
        return bool(self._held)

    def holds(self, line: bytes) -> bool:
        """Hold *line* for the next process if it is a request. Returns whether it is one."""
        message = object_in(line)
        if held := is_request(message):
            self._held[_key(message["id"])] = line
        return held

    def refused(self, reason: str) -> list[JsonObject]:
        """The errors for the held requests, if there is no next process."""
        held, self._held = self._held, {}
        return [failed(json.loads(key), reason) for key in held]

    def said_again(self) -> list[bytes]:
        """The lines for a new process: the beginning of the session, and the held requests."""
        replayed = [line_of(message) for message in self.replay()]
        held, self._held = self._held, {}
        return [*replayed, *(line for line in map(self.passed_to_gateway, held.values()) if line is not None)]

    def lost(self) -> list[JsonObject]:
        """The messages for the client after the end of a connection: errors for requests, and cancelled questions."""
        left = [each for each in self._requests.values() if not _is_said_again(each)]
        questions, self._questions = self._questions, {}
        self._requests = {key: each for key, each in self._requests.items() if _is_said_again(each)}
        self._generation += 1
        return [
            *(unanswered(each["id"], each["method"], _LOST) for each in left),
            *(notification(_CANCELLED, {"requestId": json.loads(key)}) for key in questions),
        ]

    def replay(self) -> list[JsonObject]:
        """The beginning of the session for a new process. The client sees no answer a second time."""
        return [
            {**each, "id": _REPLAYED} if "id" in each and _key(each["id"]) not in self._requests else each
            for each in self._opening.values()
        ]

    def changes(self) -> list[JsonObject]:
        """The notifications that lists may have changed, because another process makes them now."""
        if not self._listed:
            return []
        from toolsearch.wire.mcp import opening

        listed: dict[str, Json] = {each.key: [] for method, each in opening.LISTS.items() if method in self._listed}
        listens = [each for each in self._opening.values() if each["method"] == _LISTEN]
        heard = [each for each in map(opening.acknowledgement, listens) if each is not None]
        return opening.changes_between({}, listed, None if _INITIALIZE in self._opening else heard)


def _is_said_again(request: JsonObject) -> bool:
    return request["method"] in {_INITIALIZE, _LISTEN}


def _key(id_: Json) -> str:
    """A key for an id. The ids 1 and "1" have two keys."""
    return json.dumps(id_)


def _head_of_answer(line: bytes) -> JsonObject | None:
    """The id of an answer, read from the beginning of the line alone. None for any other line."""
    if not line.startswith(_HEAD):
        return None
    try:
        id_, _ = _DECODER.raw_decode(line[len(_HEAD) : len(_HEAD) + _LONGEST_ID].decode(errors="replace"))
    except ValueError:
        return None
    rest = line[len(_HEAD) + len(json.dumps(id_)) :] if isinstance(id_, int) else b""
    return {"id": id_} if rest.startswith((b',"result":', b',"error":')) else None
