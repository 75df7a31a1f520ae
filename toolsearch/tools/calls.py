"""One call of a tool, as a model asks for it, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolsearch.tools.arguments import parse_arguments
from toolsearch.tools.blocks import block_text
from toolsearch.tools.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; *arguments* are JSON text or already an object.

    *unfinished* says why the call must not run: how its reply ended, if it ended before it was finished.
    """

    id: str
    name: str
    arguments: str | JsonObject = ""
    unfinished: str = ""

    @property
    def parsed_arguments(self) -> dict[str, Json]:
        """The arguments as an object, as they always are for a hook. Raises BadArgumentsError where they are none."""
        return parse_arguments(self.arguments)


def marked_unfinished(calls: Sequence[ToolCall], why: str) -> list[ToolCall]:
    """Return *calls* as those of a reply that did not finish, unless *why* is ""; a mark that is there stays."""
    return [replace(call, unfinished=why) if why and not call.unfinished else call for call in calls]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of one call, good or bad.

    content        blocks in MCP's shape: text, image, audio, resource, resource_link
    structured     the same as JSON, if the tool gave an object or a list and all of it fitted
    is_error       the call failed; the content says why, for the model to read
    return_direct  this goes to the caller as the answer; never set on a failure, which the model must see
    error_code     the ``code`` of the error of a failed call, such as ``bad_arguments``
    """

    call_id: str
    name: str
    content: tuple[JsonObject, ...]
    structured: Json | None = None
    is_error: bool = False
    return_direct: bool = False
    error_code: str | None = None

    @property
    def text(self) -> str:
        """Everything that is text, one block after the other."""
        texts = (block_text(block) for block in self.content)
        return "\n".join(text for text in texts if text is not None)


def returns_directly(results: Sequence[ToolResult]) -> bool:
    """Whether a whole batch goes to the caller instead of the model: only if each of its results does."""
    return bool(results) and all(result.return_direct for result in results)
