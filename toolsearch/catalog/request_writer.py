"""The interface to the language model that writes requests of users for tools."""

from __future__ import annotations

from typing import Final, Protocol

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.answers import ChatResponse

TOOLS_PER_CALL: Final = 20  # tools in one question to a model
CALLS_AT_ONCE: Final = 4  # questions to a model


class RequestWriter(Protocol):
    """A language model that is asked for requests. A `ChatClient` is one, with any model."""

    @property
    def model_name(self) -> str:
        """The name that is noted in each line of the file."""
        ...

    async def answer(self, said: str, *, system: str, schema: JsonObject, max_tokens: int) -> ChatResponse:
        """Return the model's answer to *said*: JSON by *schema*, if the model obeys, of at most *max_tokens*.

        Raises ChatModelError if the model cannot be asked.
        """
        ...
