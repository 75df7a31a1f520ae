"""Which clients are shown what: what is known of them, and what a user says of them."""

import pytest

from toolsearch.access.principals import LOCAL
from toolsearch.gateway.caller import Caller, Era
from toolsearch.gateway.exposure.clients import ClientTable


def legacy(name: str, version: str = "1.0") -> Caller:
    return Caller(LOCAL, Era.LEGACY, session_key="s", client_name=name, client_version=version)


@pytest.mark.parametrize(
    ("name", "exposing"),
    [
        ("claude-code", "expand"),
        ("Visual Studio Code", "expand"),
        ("Visual-Studio-Code", "expand"),
        ("Visual Studio Code - Insiders", "expand"),
        ("opencode", "expand"),
        ("Codex", "fixed"),
        ("codex-mcp-client", "fixed"),
        ("cursor-vscode", "fixed"),
        ("ChatGPT", "fixed"),
        ("claude-ai", "hedge"),
        ("some-client", "hedge"),
        ("", "hedge"),
    ],
)
def test_a_client_of_the_older_era_goes_by_what_is_known_of_it(name, exposing):
    assert ClientTable().exposing(legacy(name)) == exposing


def test_a_client_of_2026_has_a_fixed_list_whatever_is_known_or_said_of_it():
    modern = Caller(LOCAL, Era.MODERN, client_name="claude-code")

    assert ClientTable().exposing(modern) == "fixed"
    assert ClientTable({"*": "expand"}).exposing(modern) == "fixed"


def test_no_list_grows_where_the_transport_keeps_no_sessions():
    stateless = Caller(LOCAL, Era.LEGACY, session_key=None, client_name="claude-code")

    assert ClientTable({"claude-code": "expand"}).exposing(stateless) == "fixed"


def test_what_a_user_says_of_a_client_counts_before_what_is_known():
    table = ClientTable({"Claude-*": "fixed", "new-*": "expand"})

    assert table.exposing(legacy("claude-code")) == "fixed"
    assert table.exposing(legacy("New-Client")) == "expand"
    assert table.exposing(legacy("codex")) == "fixed"


def test_the_first_of_a_users_globs_that_fits_counts():
    table = ClientTable({"codex/0.147*": "expand", "codex*": "hedge"})

    assert table.exposing(legacy("codex", "0.147.2")) == "expand"
    assert table.exposing(legacy("codex", "0.146.0")) == "hedge"
