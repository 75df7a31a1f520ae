"""The server's name in meaning: its telling words, each tool's share of them, and no trace where it tells nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from toolsearch_indexes import semantic
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder, StaticEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.semantic import SemanticArm, semantic_fields, telling_words, told_of

ENCODER = HashingEncoder(64)
BUILT_IN = StaticEncoder()
LOADS = ToolDocument("json__loads", "Deserialize s to a Python object", server="json", local_name="loads")
PARSE_QS = ToolDocument(
    "urllib_parse__parse_qs", "Parse a query given as a string", server="urllib.parse", local_name="parse_qs"
)


@pytest.mark.parametrize(
    ("server", "tool", "told"),
    [
        ("json", "loads", "json"),
        ("MCP Server Chart", "generate area", "chart"),
        ("An API of the weather service", "now", "weather"),
        ("az network", "az network vnet create", ""),
        ("Files", "read file", ""),
        ("git A git MCP server", "status", "git"),
        ("", "status", ""),
    ],
)
def test_what_says_nothing_and_what_the_tool_says_itself_are_passed_over(server: str, tool: str, told: str) -> None:
    assert told_of(tool, telling_words(server, lambda _: True)) == told


def test_a_name_that_the_encoder_does_not_know_tells_nothing() -> None:
    assert list(telling_words("Zqwx Weather", BUILT_IN.knows).values()) == ["weather"]
    assert telling_words("Zqwx", BUILT_IN.knows) == {}


def test_the_server_has_the_weight_of_one_word_of_the_tools_name() -> None:
    fields, servers = ENCODER.encode_documents(semantic_fields(PARSE_QS)), ENCODER.encode_documents(["urllib"])
    expected = fields.sum(axis=0) + servers[0] / 2

    (vector,) = SemanticArm(ENCODER).document_vectors([PARSE_QS])

    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_tool_has_the_same_vector_however_many_are_embedded_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = SemanticArm(BUILT_IN)
    tools = [LOADS, PARSE_QS, replace(LOADS, description="Read a text. Give a value."), replace(PARSE_QS, server="")]
    together = arm.document_vectors(tools)

    monkeypatch.setattr(semantic, "_BLOCK", 3)

    np.testing.assert_array_equal(arm.document_vectors(tools), together)
    np.testing.assert_array_equal(np.concatenate([arm.document_vectors([tool]) for tool in tools]), together)


def test_a_server_that_tells_nothing_changes_no_vector() -> None:
    arm = SemanticArm(BUILT_IN)
    silent = [replace(LOADS, server=server) for server in ("", "Zqwx", "MCP Server", "loads")]

    vectors = arm.document_vectors(silent)

    assert all(np.array_equal(vectors[0], vector) for vector in vectors)


def test_a_tool_keeps_its_vector_beside_tools_of_other_servers() -> None:
    arm = SemanticArm(BUILT_IN)

    beside = arm.document_vectors([PARSE_QS, LOADS, replace(LOADS, name="loads", server="")])

    for document, vector in zip([PARSE_QS, LOADS], beside, strict=False):
        assert np.array_equal(arm.document_vectors([document])[0], vector)


def test_a_tool_is_found_by_what_only_its_servers_name_says() -> None:
    gzip, json = (
        ToolDocument(f"{server}__open", "Open the input", server=server, local_name="open")
        for server in ("gzip", "json")
    )
    index = ToolSearchIndex([gzip, json], encoder=BUILT_IN)

    assert index.search("read json", strategy="semantic")[0].name == "json__open"
    assert index.search("read a compressed file", strategy="semantic")[0].name == "gzip__open"


def test_a_heading_is_a_sentence_of_its_own() -> None:
    heading = "List pull requests\n\nLists pull requests in a repository. Drafts, too."

    assert semantic_fields(ToolDocument("pulls_list", heading))[1] == "List pull requests"
    assert semantic_fields(ToolDocument("pulls_list", heading.replace("\n\n", "\n")))[1].endswith("in a repository.")
