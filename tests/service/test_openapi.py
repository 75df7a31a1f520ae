"""The OpenAPI document: kept as a file, complete, and readable."""

import json
from pathlib import Path

import jsonschema
import pytest

from toolsearch.service.openapi_page import openapi_page

PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document():
    return json.loads(openapi_page())


@pytest.fixture(scope="module")
def operations(document):
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_the_page_is_the_document_of_the_routes_as_they_are(document):
    """If this fails, run: just openapi"""
    assert json.loads(PAGE.read_text(encoding="utf-8")) == document


def test_every_operation_has_a_summary_a_tag_that_is_described_and_a_name_of_its_own(document, operations):
    described = {tag["name"] for tag in document["tags"]}

    assert [name for name, each in operations.items() if not each.get("summary")] == []
    assert {tag for each in operations.values() for tag in each["tags"]} == described
    names = [each["operationId"] for each in operations.values()]
    assert len(set(names)) == len(names)


def test_every_operation_but_those_of_monitors_needs_a_key_and_tells_of_problems(operations):
    is_open = {name for name, each in operations.items() if each["security"] == []}

    assert is_open == {"GET /healthz", "GET /readyz"}
    for name in operations.keys() - is_open:
        assert {"401", "403", "429", "500", "503"} <= operations[name]["responses"].keys(), name
    assert [name for name, each in operations.items() if "default" in each["responses"]] == []


def test_examples_are_what_the_schemas_ask_for(document):
    schemas = document["components"]["schemas"]
    examples = {name: schema["examples"][0] for name, schema in schemas.items() if "examples" in schema}

    assert {"NewCatalog", "SearchRequest", "NewSession"} <= examples.keys()
    for name, example in examples.items():
        jsonschema.validate(example, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})
