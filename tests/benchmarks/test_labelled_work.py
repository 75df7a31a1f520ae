"""Conversations with labelled queries: the tools that they need, and what the model asks for them."""

from benchmarks.agent_queries import AgentQuery
from benchmarks.labelled_work import labelled_conversations, needed_tools, queries_for
from toolsearch.bench.conversations import Preset
from toolsearch.catalog.indexing import document_of
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.index import ToolSearchIndex

TOOLS = [
    ToolDefinition("send_mail", "Send an email to somebody."),
    ToolDefinition("send_letter", "Send a letter to somebody by post."),
    ToolDefinition("pay_bill", "Pay a bill that is open."),
]
QUERIES = [
    AgentQuery("1", "write to somebody by post", frozenset({"send_mail", "send_letter"}), "need"),
    AgentQuery("2", "settle what is owed", frozenset({"pay_bill"}), "synonyms"),
]


def index() -> ToolSearchIndex:
    return ToolSearchIndex([document_of(tool) for tool in TOOLS])


def test_of_several_right_tools_the_one_that_is_found_is_needed() -> None:
    assert needed_tools(QUERIES, index()) == {
        "send_letter": "write to somebody by post",
        "pay_bill": "settle what is owed",  # which no search for it finds
    }


def test_the_user_and_the_model_ask_with_the_labelled_query_and_then_the_model_with_the_tools_words() -> None:
    (conversation,) = labelled_conversations(TOOLS, QUERIES, index(), Preset(turns=6, needs=1, reused=0), 1)

    asked = {(turn.steps[0].calls[0].name, turn.user, turn.steps[0].calls[0].queries[0]) for turn in conversation.turns}
    assert asked == {
        ("send_letter", "Please write to somebody by post.", "write to somebody by post"),
        ("pay_bill", "Please settle what is owed.", "settle what is owed"),
    }
    assert {len(turn.steps[0].calls[0].queries) for turn in conversation.turns} == {2}


def test_queries_whose_tools_are_not_there_are_left_out() -> None:
    found = queries_for(["mcp-servers"], ["everything__echo"])

    assert found
    assert all(query.relevant == {"everything__echo"} for query in found)
