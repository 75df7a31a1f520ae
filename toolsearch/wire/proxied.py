"""What a proxy needs of the format of a model API: the history that a client sends back, and replies that are written
to a client while the model may be asked several times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.carried import CarriedCall, OwnAnswer
from toolsearch.wire.events import Event


@dataclass(frozen=True, slots=True)
class Found:
    """The place in a conversation right after an answer to a search that found the tools *names*."""

    names: tuple[str, ...]


Restored: TypeAlias = int | dict[str, Json] | Found
"""A part of a restored history: the place of an entry that goes on as the client sent it, or an entry in its stead."""

ToClient: TypeAlias = Callable[[ToolCall], ToolCall | None]
"""The call that the client gets for a held call of the model, by ``namespace.name`` if it has a namespace; None if the
proxy runs it.
"""


@dataclass(frozen=True, slots=True)
class History:
    """How a conversation with the model is written, and made again from the history of a client.

    called_by_call_tool  tools whose calls the model makes by ``callTool``, and the client sees as their own
    answer_to_search     the answer to a search that found these names. It is asked for once for each search, in order
    binds_thinking       whether the API refuses thinking if what came before it has changed
    full_names           names of tools in namespaces, by ``namespace.name``
    has_native_search    whether answers may load tools, and the search is the API's own if it has one for clients
    unanswered           calls of the proxy without answers in a history that the API stores; None: the client sends it
    """

    called_by_call_tool: Collection[str]
    answer_to_search: Callable[[Sequence[str]], OwnAnswer]
    binds_thinking: bool = False
    full_names: Mapping[str, str] = field(default_factory=dict[str, str])
    has_native_search: bool = False
    unanswered: Sequence[CarriedCall] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A reply that the API stores, so that a request may continue it by its id.

    given_id    the id that the client got
    id          that of the model's last response, with which the API has stored the whole conversation
    unanswered  as in `History`
    """

    given_id: str
    id: str
    unanswered: Sequence[CarriedCall]


@dataclass(frozen=True, slots=True)
class Continuation:
    """The ways in which requests of an API go on with a conversation that they do not hold.

    parameter       holds the id of the stored reply that a request continues
    unchanged       other such parameters: a request with one of them is passed on as it came
    code            the API's code for an id that names no stored reply
    carries_rounds  whether an entry has the id of a client's call that carries hidden rounds
    """

    parameter: str
    unchanged: Sequence[str]
    code: str
    carries_rounds: Callable[[Json], bool]


class Reply(Protocol):
    """One reply to a client, made of the replies of a model in one or more rounds, one after another.

    Calls of the *held* names reach the client only as its *to_client* says. All from the first call of a round on waits
    for the end of the round, since the id of the client's first call carries what the client is not shown. All else is
    passed on at once. What comes is passed on with its bytes, unless something in it has changed.
    """

    def add_event(self, event: Event) -> list[Event]:
        """Return what the client gets now. The events that end the model's reply are kept for `end`."""
        ...

    def add_whole(self, reply: dict[str, Json]) -> None:
        """Take a reply of the model that is not streamed."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the model's reply of this round has come to its end."""
        ...

    @property
    def own_calls(self) -> list[ToolCall]:
        """The calls of this round that the proxy runs, in order; marked `unfinished` if the reply was cut off."""
        ...

    @property
    def has_client_calls(self) -> bool:
        """Whether the client has to run calls of this round, so that the reply ends with it."""
        ...

    def next_entries(self, results: Sequence[ToolResult]) -> list[dict[str, Json]]:
        """The entries that continue the conversation with the model after this round: its reply as it came, and the
        *results* of the own calls.
        """
        ...

    def end_round(self, results: Sequence[ToolResult]) -> list[Event]:
        """Return what has waited, and begin a new round. The own calls and their *results* are carried by the next call
        of the client, from which `restored` reads them.
        """
        ...

    def end(self) -> list[Event]:
        """What has waited, and the events that end the reply, with the usage of all rounds."""
        ...

    def fail(self, message: str) -> list[Event]:
        """The events that end a reply whose model broke off, so that no client waits or takes it as whole."""
        ...

    def body(self) -> dict[str, Json]:
        """The whole reply, if it is not streamed. It is the model's own, if nothing was held."""
        ...

    @property
    def stored(self) -> Stored | None:
        """The reply as the API has stored it, if the API does that."""
        ...

    @property
    def is_changed(self) -> bool:
        """Whether the reply differs from the one that the model sent. If not, its bytes can be passed on."""
        ...


class ProxiedWire(Protocol):
    """The functions of the module ``proxied`` of each model API."""

    @property
    def PATH(self) -> str:  # noqa: N802  a constant of the module
        """Where requests are posted, below the address of the API, such as "/v1/messages"."""
        ...

    @property
    def ENTRIES(self) -> str:  # noqa: N802
        """The key of the conversation in a request."""
        ...

    @property
    def CONTINUATION(self) -> Continuation | None:  # noqa: N802
        """None if each request of the API holds its conversation."""
        ...

    def restored(self, entries: Sequence[Json], history: History) -> list[Restored]:
        """Return the conversation as the model knows it, with the rounds that ids of the client's calls carry. Ids that
        cannot be read stay as they are.
        """
        ...

    def open_reply(self, held: Collection[str], to_client: ToClient, history: History) -> Reply:
        """See `Reply`. Its rounds are written as `restored` writes them for the same *history*."""
        ...

    def error_body(self, message: str, code: str, status: int) -> JsonObject:
        """An error of the proxy in the shape of the API."""
        ...
