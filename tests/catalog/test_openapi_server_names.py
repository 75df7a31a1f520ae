"""What the server of an OpenAPI document is called, if nobody names it, and what that gives its tools."""

from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog
from toolsearch.catalog.loading import open_source
from toolsearch.catalog.request_packs import shipped_requests
from toolsearch.catalog.sources.openapi_document import server_name
from toolsearch.documents.reading import read_document

ORDERS = Path(__file__).parents[2] / "examples" / "orders.yaml"
LONG = "actions/set-github-actions-default-workflow-permissions-repository"


def named(url: str | None = None, title: str = "", file_name: str = "") -> str:
    return server_name({"info": {"title": title}, "servers": [{"url": url}] if url else []}, file_name)


def github(*operations: tuple[str, str]) -> dict[str, Any]:
    """A document that says of itself what GitHub's own says; *operations* are ids and summaries."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "GitHub's official OpenAPI spec + Octokit extension"},
        "servers": [{"url": "https://api.github.com"}],
        "paths": {f"/{given}": {"put": {"operationId": given, "summary": summary}} for given, summary in operations},
    }


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.github.com", "github"),
        ("https://api.stripe.com/", "stripe"),
        ("//api.edrv.io/v1", "edrv"),
        ("https://api.acme-shop.co.uk:8443/v2", "acme_shop"),
        ("https://messaging.twilio.com", "twilio_messaging"),
        ("https://checkout-test.adyen.com/v70", "adyen_checkout"),
        ("https://your-domain.atlassian.net", "atlassian"),
        ("https://{tenant}.zendesk.com/api", "zendesk"),
        ("https://api.ebay.com{basePath}", "ebay"),
        ("https://api.bücher.de", "bucher"),
        ("https://a.very.deeply.nested.name.of.hosts.acme.com", "acme_very_deeply_nested"),
    ],
)
def test_the_host_names_the_server_by_what_is_its_owners_own(url: str, expected: str) -> None:
    assert named(url, "Something Else", "openapi") == expected


@pytest.mark.parametrize(
    "url",
    [
        None,
        "/api/v3",
        "http://localhost:8000",
        "http://app.localhost",
        "http://127.0.0.1:8080",
        "http://[::1]/api",
        "http://backend:3000",
        "https://{tenant}.example.com",
        "https://{host}/api",
        "https://api.{domain}",
        "https://shop.internal",
        "https://petstore3.swagger.io/api/v3",
        "https://management.azure.com",
        "https://www.googleapis.com/shop/v3",
        "http://[broken",
    ],
)
def test_a_host_that_does_not_tell_whose_it_is_leaves_it_to_the_title(url: str | None) -> None:
    assert named(url, "Pet Shop", "openapi") == "pet_shop"


@pytest.mark.parametrize(
    ("title", "file_name", "expected"),
    [
        ("GitHub v3 REST API", "x", "github"),
        ("GitHub's official OpenAPI spec + Octokit extension", "x", "github"),
        ("Swagger Petstore - OpenAPI 3.0", "x", "petstore"),
        ("The REST API of Acme Widgets (beta)", "x", "acme_widgets"),
        ("ComputeManagementClient", "x", "compute"),
        ("AWS IoT Data Plane", "x", "aws_iot_data_plane"),
        ("Straßenverkehr API", "x", "strassenverkehr"),
        ("One Two Three Four Five Six Seven", "x", "one_two_three_four_five"),
        ("Supercalifragilisticexpialidocious", "x", "supercalifragilisticexpi"),
        ("FastAPI", "billing-openapi.v2", "billing"),
        ("电商平台", "shop", "shop"),
        ("API v1.0", "openapi", "api_v1_0"),
        ("", "", ""),
    ],
)
def test_a_title_is_read_from_its_first_telling_word_to_the_next_filler_and_then_the_file(
    title: str, file_name: str, expected: str
) -> None:
    assert named(None, title, file_name) == expected


def test_the_requests_that_ship_are_found_for_githubs_own_document_though_its_names_are_cut() -> None:
    catalog = Catalog.from_openapi(
        github(
            (LONG, "Set default workflow permissions for a repository"),
            ("users/set-primary-email-visibility-for-authenticated-user", "Set primary email visibility"),
        )
    )
    assert catalog.names() == [
        "github__action_set-github-action-defaul-workfl-permis-repository",
        "github__users_set-primary-email-visibility-for-authenticate-user",
    ]
    for tool in catalog:
        assert len(shipped_requests().requests_for(tool.definition)) == 4


def test_operations_whose_names_would_be_cut_alike_are_all_kept_and_others_keep_their_names() -> None:
    twins = [f"{'widgets-' * 8}{'x' * 40}{end}" for end in "ab"]
    alone = Catalog.from_openapi(github((LONG, ""))).names()
    names = Catalog.from_openapi(github((twins[0], ""), (LONG, ""), (twins[1], ""))).names()

    assert len(set(names)) == 3
    assert names[1:2] == alone
    assert [name[-9] for name in (names[0], names[2])] == ["_", "_"]


def test_a_name_in_front_of_the_file_is_the_servers(tmp_path: Path) -> None:
    report = open_source(f"shop={ORDERS}").load()
    assert {tool.definition.server for tool in report.tools} == {"shop"}
    assert "shop__cancelOrder" in [tool.name for tool in report.tools]

    path = tmp_path / "billing.json"
    path.write_text('{"openapi": "3.1.0", "info": {"title": "API"}, "paths": {"/a": {"get": {}}}}', encoding="utf-8")
    assert [tool.name for tool in open_source(str(path)).load().tools] == ["billing__get_a"]
    assert Catalog.from_openapi(path).names() == ["billing__get_a"]


def test_the_example_has_its_titles_name() -> None:
    document = read_document(ORDERS)
    assert isinstance(document, dict)
    assert server_name(document, "x") == "orders"
