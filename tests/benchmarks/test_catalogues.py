"""What the benchmarks measure on: API documents become tools of the size and form that real servers offer."""

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import catalogues
from benchmarks.sources.aws import aws_tools
from benchmarks.sources.google import google_tools
from benchmarks.sources.prose import prose
from benchmarks.sources.schema import bounded
from toolsearch import Catalog, ToolDefinition
from toolsearch.errors import SourceError


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("<p>Sends a <b>message</b>.</p>\n<p>A&amp;B</p>", 99, "Sends a message . A&B"),
        ("One. Two is longer. Three.", 20, "One. Two is longer."),
        ("Version 1.2 of it goes on and on", 16, "Version 1.2 of…"),
    ],
)
def test_prose_is_plain_text_cut_to_whole_sentences(text: str, limit: int, expected: str) -> None:
    assert prose(text, limit) == expected


def test_an_aws_operation_becomes_a_tool_of_the_newest_version_of_its_service(tmp_path: Path) -> None:
    shapes = {
        "In": {
            "type": "structure",
            "required": ["Url"],
            "members": {"Url": {"shape": "S", "documentation": "<p>Where.</p>"}, "Sizes": {"shape": "L"}},
        },
        "S": {"type": "string"},
        "L": {"type": "list", "member": {"shape": "I"}},
        "I": {"type": "integer"},
    }
    model = {
        "metadata": {"serviceId": "SQS"},
        "shapes": shapes,
        "operations": {"Send": {"input": {"shape": "In"}, "documentation": "<p>Sends.</p>"}, "Ping": {}},
    }
    write(tmp_path / "sqs/2011-01-01/service-2.json", {"metadata": {}, "operations": {"Old": {}}, "shapes": {}})
    newest = tmp_path / "sqs/2012-11-05/service-2.json.gz"
    newest.parent.mkdir()
    newest.write_bytes(gzip.compress(json.dumps(model).encode()))

    send, ping = aws_tools(tmp_path)

    assert send == ToolDefinition(
        name="aws_sqs__Send",
        description="Sends.",
        input_schema={
            "type": "object",
            "properties": {
                "Url": {"type": "string", "description": "Where."},
                "Sizes": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["Url"],
        },
        server="aws_sqs",
        tags=("aws", "SQS"),
    )
    assert (ping.name, ping.local_name, dict(ping.input_schema)) == (
        "aws_sqs__Ping",
        "Ping",
        {"type": "object", "properties": {}},
    )


def test_a_google_method_of_several_versions_is_taken_from_the_newest_stable_one(tmp_path: Path) -> None:
    for version in ("v2", "v10", "v11beta"):
        method = {
            "id": "drive.files.copy",
            "description": f"Copies, as of {version}.",
            "parameters": {"fileId": {"type": "string", "required": True, "location": "path"}},
            "request": {"$ref": "File"},
        }
        document = {
            "title": "Drive API",
            "resources": {"files": {"methods": {"copy": method}}},
            "schemas": {
                "File": {"type": "object", "properties": {"title": {"type": "string"}, "id": {"readOnly": True}}}
            },
        }
        write(tmp_path / f"drive.{version}.json", document)

    [copy] = google_tools(tmp_path)

    assert (copy.name, copy.description, copy.tags) == (
        "google_drive__files_copy",
        "Copies, as of v10.",
        ("google", "Drive API"),
    )
    assert copy.input_schema == {
        "type": "object",
        "properties": {
            "fileId": {"type": "string"},
            "body": {"type": "object", "properties": {"title": {"type": "string"}}},
        },
        "required": ["fileId"],
    }


def test_the_tools_of_github_are_those_that_loading_its_document_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operation = {"operationId": "issues/create", "summary": "Create an issue", "description": "A word. " * 100}
    document = {"openapi": "3.0.3", "info": {"title": "GitHub"}, "paths": {"/issues": {"post": operation}}}
    write(tmp_path / "generated/api.github.com.json", document)
    monkeypatch.setattr(catalogues, "OCTOKIT", tmp_path)
    catalog = Catalog.from_openapi(document, server="github")

    assert catalogues.github_tools() == [tool.definition for tool in catalog]


def test_a_schema_that_contains_itself_ends_at_the_depth() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "node"}}}

    two_levels = bounded({"$ref": "node"}, lambda _: node, depth=2)

    leaf = {"type": "object"}
    assert two_levels == {
        "type": "object",
        "properties": {"child": {"type": "object", "properties": {"child": leaf}}},
    }


def test_references_that_only_refer_to_each_other_end() -> None:
    assert bounded({"$ref": "a"}, {"a": {"$ref": "b"}, "b": {"$ref": "a"}}.__getitem__) == {}


def test_a_limit_takes_evenly_spread_tools() -> None:
    assert catalogues.evenly(list(range(10)), 4) == [0, 2, 5, 7]
    assert catalogues.evenly([1, 2], 4) == [1, 2]


def test_a_missing_package_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(SourceError, match="botocore is not installed; run: pip install"):
        catalogues.converted_tools()


def test_synthetic_documents_depend_on_seed_and_number_alone() -> None:
    three = list(catalogues.synthetic_documents(3, seed=7))

    assert three == list(islice(catalogues.synthetic_documents(1_000, seed=7), 3))
    assert three != list(catalogues.synthetic_documents(3, seed=8))
    assert [len(document.description.split()) for document in three] == [16, 16, 16]


def test_synthetic_documents_have_names_of_their_own_and_whole_words() -> None:
    """A number in a word would be split off it, and the rest be in every document."""
    documents = list(catalogues.synthetic_documents(2_000))

    assert len({document.name for document in documents}) == 2_000
    assert all(word.isalpha() for document in documents for word in document.name.split("_"))
