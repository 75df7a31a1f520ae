"""The tools of two catalogs in one answer, where one of them is indexed by somebody else."""

from toolsearch import Catalog, Tool, ToolDefinition
from toolsearch.catalog.indexing import CatalogIndex, SharedIndex, document_of
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.index import ToolSearchIndex

OWN = [
    Tool(ToolDefinition("mail__send", "Send a letter to somebody.")),
    Tool(ToolDefinition("mail2__send", "Send a letter to somebody.")),
    Tool(ToolDefinition("chart__draw", "Draw a chart of numbers.")),
]
OTHERS = [
    Tool(ToolDefinition("post__send", "Send a letter to somebody.")),
    Tool(ToolDefinition("post2__send", "Send a letter to somebody.")),
    Tool(ToolDefinition("rooms__book", "Book a meeting room.")),
]


def found(query: str, *, limit: int = 5) -> list[Hit]:
    shared = ToolSearchIndex([document_of(tool.definition) for tool in OTHERS])
    names = [tool.name for tool in OTHERS]
    catalog = Catalog([*OWN, *OTHERS])
    index = CatalogIndex(catalog, ToolSearchIndex(), shared=SharedIndex(shared, names))
    try:
        assert sorted(index.index.names()) == sorted(tool.name for tool in OWN)
        return index.search(query, limit=limit, strategy="keyword")
    finally:
        index.close()


def test_the_tools_of_both_are_in_one_answer_by_score() -> None:
    assert [hit.name for hit in found("send a letter")] == ["mail2__send", "mail__send", "post2__send", "post__send"]
    assert [hit.name for hit in found("book a room")] == ["rooms__book"]


def test_equally_good_tools_of_both_share_the_chance_to_be_the_one_meant() -> None:
    """As they do in one index."""
    together = ToolSearchIndex([document_of(tool.definition) for tool in [*OWN, *OTHERS]])
    of_one = together.search("send a letter", limit=5, strategy="keyword")

    assert [hit.confidence for hit in of_one] == ["medium"] * 4
    assert [hit.confidence for hit in found("send a letter")] == ["medium"] * 4
    assert [hit.confidence for hit in found("send a letter", limit=1)] == ["medium"]
