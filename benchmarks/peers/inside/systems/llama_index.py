"""LlamaIndex: ObjectIndex over tools, and its retriever."""

from __future__ import annotations

import re
from typing import Any

import minilm
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.objects import ObjectIndex
from llama_index.core.tools import FunctionTool, ToolMetadata
from pydantic import BaseModel, Field, create_model


class _Local(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in minilm.embed_tools(texts)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return minilm.embed([query])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Retriever:
    def __init__(self) -> None:
        minilm.model()

    def index(self, tools: list[dict[str, Any]]) -> None:
        objects = [
            FunctionTool(
                fn=_unused,
                metadata=ToolMetadata(
                    name=tool["name"],
                    description=tool["description"] or tool["name"],
                    fn_schema=_arguments(tool["input_schema"]),
                ),
            )
            for tool in tools
        ]
        self._index = ObjectIndex.from_objects(objects, embed_model=_Local(embed_batch_size=1_000))

    def search(self, query: str, limit: int) -> list[str]:
        return [tool.metadata.name for tool in self._index.as_retriever(similarity_top_k=limit).retrieve(query)]


def _unused() -> None:
    """No tool is called here."""


def _arguments(schema: dict[str, Any]) -> type[BaseModel]:
    """The parameters' names, as far as Python takes them, and their descriptions: it wants a class, not a schema."""
    fields = {}
    for name, about in schema.get("properties", {}).items():
        legal = re.sub(r"\W", "_", name).strip("_")
        if legal.isidentifier() and not hasattr(BaseModel, legal):
            described = about.get("description") if isinstance(about, dict) else None
            fields[legal] = (str, Field(default="", description=described if isinstance(described, str) else None))
    return create_model("Arguments", **fields)
