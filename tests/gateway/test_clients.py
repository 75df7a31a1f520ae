"""Which clients are shown what: what is known of them, and what a user says of them."""

import pytest

from toolsearch.access.principals import LOCAL
from toolsearch.discovery.exposure import APPEND, FIXED, HEDGE
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientTable
from toolsearch.wire.mcp.eras import Era


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
    assert ClientTable().exposure(legacy(name)) is {"expand": APPEND, "fixed": FIXED, "hedge": HEDGE}[exposing]


def test_a_client_of_2026_has_a_fixed_list_whatever_is_known_or_said_of_it():
    modern = Caller(LOCAL, Era.MODERN, client_name="claude-code")

    assert ClientTable().exposure(modern) is FIXED
    assert ClientTable({"*": "expand"}).exposure(modern) is FIXED


def test_no_list_grows_where_the_transport_keeps_no_sessions():
    stateless = Caller(LOCAL, Era.LEGACY, session_key=None, client_name="claude-code")

    assert ClientTable({"claude-code": "expand"}).exposure(stateless) is FIXED


def test_what_a_user_says_of_a_client_counts_before_what_is_known():
    table = ClientTable({"Claude-*": "fixed", "new-*": "expand"})

    assert table.exposure(legacy("claude-code")) is FIXED
    assert table.exposure(legacy("New-Client")) is APPEND
    assert table.exposure(legacy("codex")) is FIXED


def test_the_first_of_a_users_globs_that_fits_counts():
    table = ClientTable({"codex/0.147*": "expand", "codex*": "hedge"})

    assert table.exposure(legacy("codex", "0.147.2")) is APPEND
    assert table.exposure(legacy("codex", "0.146.0")) is HEDGE
