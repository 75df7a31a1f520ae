"""LlamaIndex: a tool retriever."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from toolsearch.adapters.conversation import for_framework, listed, next_turn, text_and_images
from toolsearch.errors import MissingExtraError, ToolSearchError
from toolsearch.session import Session
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import is_legal_name

try:
    from llama_index.core.base.llms.types import ImageBlock, TextBlock
    from llama_index.core.objects import ObjectRetriever
    from llama_index.core.schema import QueryType
    from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput
except ImportError as error:
    raise MissingExtraError("the adapter for LlamaIndex", "llama-index") from error


class ToolSearchRetriever(ObjectRetriever[AsyncBaseTool]):
    """The tools of one conversation: ``FunctionAgent(tool_retriever=ToolSearchRetriever(session))``.

    LlamaIndex retrieves by the user's words before each request, and by a tool's name before each call.

    search_first  number of tools to load for the user's words, so that the model need not search for them
    """

    def __init__(self, session: Session, *, search_first: int = 0) -> None:
        self._session = session
        self._search_first = search_first
        self._said = ""
        self._listed: dict[str, AsyncBaseTool] = {}

    def retrieve(self, str_or_query_bundle: QueryType) -> list[AsyncBaseTool]:
        asked = _text(str_or_query_bundle)
        return self._for_call(asked) or self._for_request(asked)

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[AsyncBaseTool]:
        asked = _text(str_or_query_bundle)
        return self._for_call(asked) or await search_threads.run(self._for_request, asked)

    def _for_call(self, asked: str) -> list[AsyncBaseTool]:
        """The tool named *asked*; empty if these are the user's words."""
        called = self._called(asked) if asked != self._said else None
        return [called] if called else []

    def _for_request(self, said: str) -> list[AsyncBaseTool]:
        if said != self._said:
            self._said = said
            next_turn(self._session)
            if self._search_first:
                self._session.search(said, limit=self._search_first)
        self._listed = {each.name: _SessionTool(self._session, each) for each in listed(self._session, said)}
        return list(self._listed.values())

    def _called(self, name: str) -> AsyncBaseTool | None:
        """The tool of that name; None if it is not in reach, and at once for words that can be no name."""
        if not is_legal_name(name):
            return None
        try:
            return self._listed.get(name) or _SessionTool(
                self._session, for_framework(self._session.resolve(name).definition)
            )
        except ToolSearchError:
            return None


def _text(query: QueryType) -> str:
    return query if isinstance(query, str) else query.query_str


class _SessionTool(AsyncBaseTool):
    def __init__(self, session: Session, definition: ToolDefinition) -> None:
        self._session = session
        self._metadata = _Metadata(definition.description, definition.name)
        self._metadata.parameters = definition.input_schema

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def call(self, /, *_: Any, **arguments: Any) -> ToolOutput:
        return _output(self._session.call_sync(self._metadata.get_name(), arguments), arguments)

    async def acall(self, /, *_: Any, **arguments: Any) -> ToolOutput:
        return _output(await self._session.call(self._metadata.get_name(), arguments), arguments)


class _Metadata(ToolMetadata):
    parameters: JsonObject

    def get_parameters_dict(self) -> dict[str, Any]:
        return dict(self.parameters)


def _output(result: ToolResult, arguments: JsonObject) -> ToolOutput:
    text, images = text_and_images(result)
    pictures = [ImageBlock(image=b64decode(data), image_mimetype=mime_type) for mime_type, data in images]
    return ToolOutput(
        tool_name=result.name,
        blocks=[*([TextBlock(text=text)] if text else []), *pictures],
        raw_input=dict(arguments),
        raw_output=result.structured,
        is_error=result.is_error,
    )
