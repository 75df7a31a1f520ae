"""Pages of lists, and requests that depend on what is there."""

from collections.abc import Callable

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response

from toolsearch.service.web.answers import Conditions, Paging, make_cursor, read_cursor
from toolsearch.service.web.problems import HttpRefusal


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(HttpRefusal) as caught:
        call()
    return caught.value.status_code, caught.value.code


def test_a_cursor_leads_on_in_the_list_that_it_came_from() -> None:
    page = Paging("acme\n/v1/keys", "", 2).page(["a", "b", "ü"], str, str.upper)
    last = Paging("acme\n/v1/keys", "b", 2).page(["ü"], str, str.upper)

    assert (page.items, last.items, last.next) == (["A", "B"], ["Ü"], None)
    assert page.next is not None
    assert read_cursor("acme\n/v1/keys", page.next) == "b"


def test_a_cursor_that_was_changed_or_is_of_another_list_is_refused() -> None:
    cursor = make_cursor("acme\n/v1/keys", "key_7")
    other = chr(ord(cursor[-2]) ^ 1)
    bad = ["?", "AAAA", cursor[:-1], cursor + "A", f"{cursor[:-2]}{other}{cursor[-1]}", cursor + "=", " " + cursor]

    assert {refused(lambda each=each: read_cursor("acme\n/v1/keys", each)) for each in bad} == {(400, "bad_cursor")}
    assert refused(lambda: read_cursor("acme\n/v1/catalogs", cursor)) == (400, "bad_cursor")
    assert refused(lambda: read_cursor("other\n/v1/keys", cursor)) == (400, "bad_cursor")


@pytest.mark.parametrize(
    ("match", "none_match", "version", "expected"),
    [
        ((), (), 7, None),
        ((), (), None, None),
        (('"7"',), (), 7, 7),
        (('"6"', '"7"'), (), 7, 7),
        (("*",), (), 7, 7),
        ((), ("*",), None, 0),
        ((), ('"6"',), 7, 7),
    ],
)
def test_a_write_names_the_version_that_it_goes_over(
    match: tuple[str, ...], none_match: tuple[str, ...], version: int | None, expected: int | None
) -> None:
    assert Conditions(match, none_match).over(version) == expected


@pytest.mark.parametrize(
    ("match", "none_match", "version"),
    [
        (('"6"',), (), 7),
        (('W/"7"',), (), 7),
        (("7",), (), 7),
        (("*",), (), None),
        ((), ("*",), 7),
        ((), ('"7"',), 7),
    ],
)
def test_a_write_over_another_version_is_refused(
    match: tuple[str, ...], none_match: tuple[str, ...], version: int | None
) -> None:
    assert refused(lambda: Conditions(match, none_match).over(version)) == (412, "precondition_failed")


def test_a_write_may_have_to_name_a_version() -> None:
    assert refused(lambda: Conditions((), ()).over(7, is_required=True)) == (428, "precondition_required")


def test_what_a_client_has_already_is_not_sent_again() -> None:
    response = Response()

    Conditions((), ('"6"',)).tag(response, 7)
    with pytest.raises(HTTPException) as caught:
        Conditions((), ('W/"7"',)).tag(response, 7)

    assert response.headers["etag"] == '"7"'
    assert caught.value.status_code == 304
    assert caught.value.headers == {"etag": '"7"', "cache-control": "private, no-cache"}
