"""Tools that a search loads into the conversation, where the provider allows it, so that its prompt cache stays valid.

No provider takes words in such an answer. So the rest of a search's answer, such as the other tools that it found, is a
text that follows the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from toolsearch.documents.json_values import is_object
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import block_text, text_block

_TEXT_PREFIX: Final = f"{TOOL_NAME}: "  # prefix of a text that follows search results


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """The tools that a result of ``toolSearchTool`` may load.

    definitions  the deferred tools, by name, as the request announces them. Any other name is left out of an answer,
                 since the provider would refuse the request for it
    is_declared  whether the request has the search as the API's own, even if no answer can load anything yet

    A result names its tools in its structured form, ``{"tools": [name, ...]}``. Its first block says the same in words;
    the other blocks hold the rest.
    """

    definitions: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    is_declared: bool = False

    def found(self, result: ToolResult) -> list[ToolDefinition]:
        """The definitions to load for *result*, in its order; ``[]`` if it failed or is no search."""
        return [self.definitions[name] for name in found_names(result) if name in self.definitions]

    def texts_beside(self, result: ToolResult) -> list[str]:
        """The texts that the model reads besides the tools that *result* loads; ``[]`` if it loads nothing."""
        texts = map(block_text, result.content[1:] if self.found(result) else ())
        return [text for text in texts if text]

    def text_read(self, result: ToolResult) -> str:
        """The words of *result* that the model reads: all of them if it loads nothing."""
        return "\n".join(self.texts_beside(result)) if self.found(result) else result.text


def found_names(result: ToolResult) -> list[str]:
    """The names of the tools that *result* has found, in its order; ``[]`` if it failed or is no search."""
    if result.is_error or result.name != TOOL_NAME or not is_object(result.structured):
        return []
    names = cast("Sequence[str]", result.structured.get("tools", ()))
    return list(dict.fromkeys(names))


def loaded_text(names: Iterable[str]) -> str:
    """The first block of an answer that loads *names*, for readers who are not shown the definitions instead."""
    return f"Loaded, to be called by name: {', '.join(names)}."


def write_beside(text: str) -> str:
    """Mark *text*, which follows the results, so that it is not taken for words of the user or of the application."""
    return f"{_TEXT_PREFIX}{text}"


def is_beside(text: str) -> bool:
    """Whether `write_beside` wrote *text*."""
    return text.startswith(_TEXT_PREFIX)


def with_beside(results: Sequence[ToolResult], texts: Iterable[str]) -> list[ToolResult]:
    """Return *results*, as they were read, with the *texts* that followed them: all in the last search among them."""
    blocks = tuple(text_block(text.removeprefix(_TEXT_PREFIX)) for text in texts)
    last = max((place for place, result in enumerate(results) if result.name == TOOL_NAME), default=-1)
    if not blocks or last < 0:
        return list(results)
    names = found_names(results[last])
    content = (*([text_block(loaded_text(names))] if names else []), *blocks)
    return [*results[:last], replace(results[last], content=content), *results[last + 1 :]]
