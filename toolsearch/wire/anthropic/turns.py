"""The order of messages at Anthropic: user, perhaps system, assistant, and again."""

from __future__ import annotations

from toolsearch.tools.json_types import Json

_RESULT = "tool_result"


class Turns:
    """Builds a request's messages. Neighbours of one role become one.

    What the system says waits for the place where the API takes it: after a user's message, and before the model's next
    one or at the end. Results stand before all else in a user's message.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Json]] = []
        self._system: list[dict[str, Json]] = []  # what the system says next

    def add(self, role: str, blocks: list[dict[str, Json]]) -> None:
        if not blocks:
            return
        if role == "system":
            self._system += blocks
            return
        if role == "assistant" and self._messages and self._messages[-1]["role"] == "user":
            self._say_system()
        self._say(role, blocks)

    def messages(self) -> list[dict[str, Json]]:
        self._say_system()
        return self._messages

    def _say_system(self) -> None:
        if self._system:
            self._say("system", self._system)
            self._system = []

    def _say(self, role: str, blocks: list[dict[str, Json]]) -> None:
        if not self._messages or self._messages[-1]["role"] != role:
            self._messages.append({"role": role, "content": blocks})
            return
        joined = [*self._messages[-1]["content"], *blocks]
        self._messages[-1]["content"] = sorted(joined, key=_after_results) if role == "user" else joined


def _after_results(block: dict[str, Json]) -> bool:
    return block.get("type") != _RESULT
