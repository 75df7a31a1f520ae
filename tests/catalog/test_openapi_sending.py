"""What of an operation's request is sent: its body, and the credentials that let it in and no others."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from toolsearch.catalog.sources.openapi_requests import Credentials, HttpRequest, SentRequest, encoded, sent_request
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.json_types import Json

KEY = "s3cret+key/1"
SCHEMES: dict[str, Any] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "openid": {"type": "openIdConnect"},
    "certificate": {"type": "mutualTLS"},
    "nowhere": {"type": "apiKey", "in": "trailer", "name": "X-Key"},
    "nameless": {"type": "apiKey", "in": "header"},
}


def sent(*ways: tuple[str, ...], path: str = "/cats", **given: Any) -> SentRequest:
    request = HttpRequest("GET", "https://pets.example", path, security=ways)
    return sent_request(request, Credentials(SCHEMES, **given))


# Credentials


@pytest.mark.parametrize(
    ("scheme", "url", "headers"),
    [
        ("header", "", {"x-key": KEY}),
        ("query", f"?api_key={quote(KEY, safe='')}", {}),
        ("cookie", "", {"cookie": f"sid={KEY}"}),
        ("basic", "", {"authorization": "Basic czNjcmV0K2tleS8x"}),
        ("bearer", "", {"authorization": f"Bearer {KEY}"}),
        ("oauth", "", {"authorization": f"Bearer {KEY}"}),
        ("openid", "", {"authorization": f"Bearer {KEY}"}),
    ],
)
def test_a_key_goes_where_its_scheme_says(scheme: str, url: str, headers: dict[str, str]) -> None:
    made = sent((scheme,), keys={scheme: KEY})

    assert (made.url, made.headers) == (f"https://pets.example/cats{url}", headers)
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize("scheme", ["certificate", "nowhere", "nameless", "unknown"])
def test_a_key_that_nobody_knows_where_to_put_goes_nowhere(scheme: str) -> None:
    with pytest.raises(
        ToolExecutionError, match=f"^not sent: there is no credential for the security scheme {scheme}$"
    ):
        sent((scheme,), keys={scheme: KEY})


def test_the_first_way_in_that_is_complete_is_taken_and_no_other_key_is_sent() -> None:
    keys = {"query": "q", "header": "h", "bearer": "b"}

    made = sent(("oauth", "query"), ("header",), ("bearer",), keys=keys)

    assert (made.url, made.headers) == ("https://pets.example/cats", {"x-key": "h"})


def test_a_way_takes_all_its_keys() -> None:
    made = sent(("query", "header"), keys={"query": "q", "header": "h", "bearer": "b"})

    assert (made.url, made.headers) == ("https://pets.example/cats?api_key=q", {"x-key": "h"})


def test_an_operation_that_asks_for_nothing_is_sent_no_key() -> None:
    assert sent(keys={"header": KEY}).headers == {}


def test_where_a_key_is_welcome_but_not_needed_it_is_sent_if_there_is_one() -> None:
    assert sent((), ("header",), keys={"header": KEY}).headers == {"x-key": KEY}
    assert sent((), ("header",)).headers == {}


def test_without_a_complete_way_in_nothing_is_sent_and_what_is_missing_is_named() -> None:
    with pytest.raises(ToolExecutionError) as refused:
        sent(("oauth", "query"), ("header",), keys={"query": KEY, "bearer": KEY})

    assert str(refused.value).endswith("the security scheme oauth, or header")


@pytest.mark.parametrize(
    ("scheme", "header"), [("header", "X-KEY"), ("bearer", "Authorization"), ("basic", "authorization")]
)
def test_a_header_that_is_sent_with_every_request_may_be_what_a_scheme_asks_for(scheme: str, header: str) -> None:
    request = HttpRequest("GET", "https://pets.example", "/cats", security=((scheme,),), headers={header: "forged"})

    assert sent_request(request, Credentials(SCHEMES, headers={header: KEY})).headers == {header.lower(): KEY}
    with pytest.raises(ToolExecutionError):
        sent_request(request, Credentials(SCHEMES, headers={"x-other": KEY}))


def test_arguments_set_no_header_of_ours_and_replace_no_credential() -> None:
    forged = dict.fromkeys(["Host", "COOKIE", "Transfer-Encoding", "X-KEY", "X-Trace"], "forged")
    request = HttpRequest(
        "GET", "https://pets.example", "/cats", headers=forged, cookies={"who": "me; sid=1"}, security=(("header",),)
    )

    made = sent_request(request, Credentials(SCHEMES, {"header": KEY}, {"Cookie": "a=1"}))

    assert made.headers == {"x-key": KEY, "x-trace": "forged", "cookie": "a=1; who=me%3B%20sid%3D1"}


def test_a_key_joins_a_query_that_the_path_has_already() -> None:
    assert (
        sent(("query",), path="/cats?kind=1", keys={"query": "q"}).url == "https://pets.example/cats?kind=1&api_key=q"
    )


def test_the_secrets_are_the_keys_in_every_form_in_which_they_are_sent() -> None:
    credentials = Credentials(
        SCHEMES, {"basic": "martin:s3cret+key/1", "bearer": "t0ken t/0"}, {"X-Team": "Team bluebird"}
    )

    assert credentials.secrets >= {
        "martin:s3cret+key/1", "martin", "s3cret+key/1", "s3cret%2Bkey/1", "s3cret%2Bkey%2F1", "Bearer t0ken t/0",
        "Basic bWFydGluOnMzY3JldCtrZXkvMQ==", "bWFydGluOnMzY3JldCtrZXkvMQ==", "t0ken t/0", "t0ken%20t/0",
        "t0ken+t%2F0", "t0ken%20t%2F0", "Team bluebird", "bluebird",
    }  # fmt: skip
    assert "s3cret" not in repr(credentials)


# Bodies


@pytest.mark.parametrize(
    ("body", "content_type", "sent"),
    [
        ({"a": "ä"}, "application/vnd.pets+json", '{"a": "ä"}'),
        ({"a": "x y", "b": [1]}, "application/x-www-form-urlencoded", "a=x+y&b=%5B1%5D"),
        ("plain", "text/plain", "plain"),
    ],
)
def test_a_body_is_encoded_by_its_content_type(body: Json, content_type: str, sent: str) -> None:
    content, told = encoded(body, content_type)
    assert (content or b"").decode() == sent
    assert told == content_type


def test_a_form_of_parts_says_what_parts_them() -> None:
    content, told = encoded({"a": "x"}, "multipart/form-data")
    boundary = told.removeprefix("multipart/form-data; boundary=")
    assert (
        f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--{boundary}--\r\n'
        == (content or b"").decode()
    )


def test_the_name_of_a_part_ends_neither_its_quotes_nor_its_line() -> None:
    content, _ = encoded({'a"\r\nX: 1': "x"}, "multipart/form-data")
    assert b'name="a%22%0D%0AX: 1"' in (content or b"")


@pytest.mark.parametrize(
    ("body", "content_type"), [({"a": 1}, "application/xml"), ([1], "application/x-www-form-urlencoded")]
)
def test_a_value_that_has_no_form_in_a_type_is_not_sent_as_another(body: Json, content_type: str) -> None:
    with pytest.raises(ToolExecutionError, match=r"^not sent: only a text can be the body of a request of the type"):
        encoded(body, content_type)
    text = json.dumps(body)
    assert encoded(text, content_type) == (text.encode(), content_type)
