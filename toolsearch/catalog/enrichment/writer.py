"""The port to whoever writes requests."""

from __future__ import annotations

from typing import Final, Protocol

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.answers import ChatResponse

TOOLS_PER_CALL: Final = 20  # that a model is asked for at once
CALLS_AT_ONCE: Final = 4


class RequestWriter(Protocol):
    """A language model that is asked for requests. A `ChatClient` is one, with whatever model it has."""

    @property
    def model_name(self) -> str:
        """Is noted in each line of the file."""
        ...

    async def answer(self, said: str, *, system: str, schema: JsonObject, max_tokens: int) -> ChatResponse:
        """Return what the model says to *said*: JSON of *schema*, as far as it obeys, of at most *max_tokens*.

        Raises ChatModelError if it cannot be asked.
        """
        ...
