"""Requests made up from the OpenAPI document: no server error, and every answer is one that the document describes."""

import json
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.kit.service_process import service_process

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_headers_conformance, response_schema_conformance),
]
MAIL = {"name": "send_mail", "description": "Send a letter to somebody.", "input_schema": {"type": "object"}}
EXAMPLES = settings(max_examples=2, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
ENDLESS = "jobs_events"  # tested with the client


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    limits = {"TOOLSEARCH_RATES__REQUESTS": "1000000", "TOOLSEARCH_QUOTAS__CATALOGS": "100000"}
    with service_process(tmp_path_factory.mktemp("data"), "--log-level", "error", **limits) as started:
        yield started


@pytest.fixture(scope="module")
def known(started):
    """The names of things that are there, by the parameter of paths that stands for them."""
    with started.client() as client:
        client.post("/v1/catalogs", json={"name": "known"}).raise_for_status()
        client.post("/v1/catalogs/known/tools", content=json.dumps([MAIL]), headers=JSON).raise_for_status()
        listing = {"kind": "listing", "name": "list", "document": [{**MAIL, "name": "write_note"}]}
        source = client.post("/v1/catalogs/known/sources", json=listing).raise_for_status().json()
        session = client.post("/v1/sessions", json={"catalog": "known"}).raise_for_status().json()
    return {
        "catalog": "known",
        "tool": "send_mail",
        "source": "list",
        "job": source["job"]["id"],
        "session": session["id"],
    }


JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def api(started):
    return schemathesis.openapi.from_url(f"{started.url}/v1/openapi.json").exclude(operation_id=ENDLESS)


def test_made_up_requests_are_answered_as_the_document_says(api, started) -> None:
    assert list(_mistakes(api, started, {})) == []


def test_requests_about_what_is_there_are_answered_as_the_document_says(api, started, known) -> None:
    about = api.exclude(method="DELETE").include(path_regex=r"\{")

    assert list(_mistakes(about, started, known)) == []


def _mistakes(api, started, known: dict[str, str]) -> Iterator[str]:
    """What is wrong with answers, for each operation; *known* stands in paths for what would be made up."""
    for result in api.get_all_operations():
        operation = result.ok()

        @EXAMPLES
        @given(case=operation.as_strategy())
        def ask(case: Case) -> None:
            case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
            case.call_and_validate(
                headers={"authorization": f"Bearer {started.key}"}, checks=CHECKS, timeout=30, base_url=started.url
            )

        try:
            ask()
        except (FailureGroup, ExceptionGroup, AssertionError) as error:
            yield f"{operation.label}: {error}"
