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
    most   tools that it is asked over; 0 for any number. More would take hours
    """

    file: str
    of: str
    only: str = ""
    about: str = ""
    most: int = 0

    @property
    def is_ours(self) -> bool:
        return self.file == OURS


_GOES_THROUGH_ALL: Final = "It goes through all tools for each request, which is quick while they are few."
_COUNTS: Final = "It counts the words that a tool shares with a request, and weighs none of them."
_COMPILED: Final = "It ranks in compiled Rust; its time grows with the tools, and ours hardly does."
_READY_SCORES: Final = "It adds up ready scores of whole words; parts of identifiers and misspelt words find nothing."
_EMBEDS_SLOWLY: Final = "It embeds with a transformer of its own: some 70 ms a request, 0.2 to 0.5 s a tool."

SYSTEMS: Final[Mapping[str, System]] = {
    "keyword": System(OURS, "Keyword"),
    "semantic": System(OURS, "Semantic"),
    "hybrid": System(OURS, "Hybrid"),
    "FastMCP BM25": System("fastmcp", "BM25", about=_GOES_THROUGH_ALL),
    "pydantic-ai default": System("pydantic_ai", "Default", about=_COUNTS),
    "Haystack SearchableToolset": System("haystack", "Searchable", about=_GOES_THROUGH_ALL),
    "ratel BM25": System("ratel", "BM25", about=_COMPILED),
    "ratel hybrid (MiniLM)": System("ratel", "Hybrid", most=1_000, about=_EMBEDS_SLOWLY),
    "LiteLLM keyword search": System("litellm", "Keyword", about=_COUNTS),
    "LiteLLM semantic filter (MiniLM)": System("litellm", "SemanticFilter"),
    "langgraph-bigtool (MiniLM)": System("langgraph_bigtool", "Default"),
    "LlamaIndex ObjectIndex (MiniLM)": System("llama_index", "Retriever"),
    "toolrank BM25": System("toolrank", "BM25", about=_READY_SCORES),
    "toolrank dense (MiniLM)": System("toolrank", "Dense"),
    "toolrank hybrid (MiniLM)": System("toolrank", "Hybrid"),
    "toolhunch hybrid (MiniLM)": System("toolhunch", "Hybrid"),
    "toolrank BM25 without stemming": System("toolrank", "BM25AsPublished", only="livemcp", about=_READY_SCORES),
    "toolrank dense on whole definitions (MiniLM)": System("toolrank", "DenseAsPublished", only="livemcp"),
}
