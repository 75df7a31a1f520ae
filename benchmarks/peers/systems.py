"""All that is measured: which class of which file in ``inside/systems``, and why ours may not be ahead of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.peers.environments import OURS


@dataclass(frozen=True, slots=True)
class System:
    """
    file   in ``inside/systems``, and the name of its environment
    of     the class in it
    only   the one catalogue that it is for; empty for all
    about  what explains a row in which ours is not ahead
    """

    file: str
    of: str
    only: str = ""
    about: str = ""

    @property
    def is_ours(self) -> bool:
        return self.file == OURS


SYSTEMS: Final[Mapping[str, System]] = {
    "keyword": System(OURS, "Keyword"),
    "semantic": System(OURS, "Semantic"),
    "hybrid": System(OURS, "Hybrid"),
    "FastMCP BM25": System("fastmcp", "BM25"),
    "pydantic-ai default": System("pydantic_ai", "Default"),
    "Haystack SearchableToolset": System("haystack", "Searchable"),
    "ratel BM25": System("ratel", "BM25"),
    "ratel hybrid (MiniLM)": System("ratel", "Hybrid"),
    "LiteLLM keyword search": System("litellm", "Keyword"),
    "LiteLLM semantic filter (MiniLM)": System("litellm", "SemanticFilter"),
    "langgraph-bigtool (MiniLM)": System("langgraph_bigtool", "Default"),
    "LlamaIndex ObjectIndex (MiniLM)": System("llama_index", "Retriever"),
    "toolrank BM25": System("toolrank", "BM25"),
    "toolrank dense (MiniLM)": System("toolrank", "Dense"),
    "toolrank hybrid (MiniLM)": System("toolrank", "Hybrid"),
    "toolhunch hybrid (MiniLM)": System("toolhunch", "Hybrid"),
    "toolrank BM25 without stemming": System("toolrank", "BM25AsPublished", only="livemcp"),
    "toolrank dense on whole definitions (MiniLM)": System("toolrank", "DenseAsPublished", only="livemcp"),
}
