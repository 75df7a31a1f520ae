"""How clients are shown tools, and what is known of them; what a user says of a client counts first."""

import pytest

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.discovery.exposure import APPEND, FIXED, WHOLE
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientTable, known_client
from toolsearch.wire.mcp.eras import Era


def legacy(name: str, version: str = "1.0") -> Caller:
    return Caller(Grant(LOCAL), Era.LEGACY, session_key="s", client_name=name, client_version=version)


MODERN = Caller(Grant(LOCAL), Era.MODERN, client_name="claude-code")


@pytest.mark.parametrize(
    ("name", "callToolRead"),
    [
        ("claude-code", "mcp__toolsearch__callToolRead"),
        ("codex-mcp-client", "callToolRead"),
        ("opencode", "toolsearch_callToolRead"),
        ("gemini-cli-mcp-client", "mcp_toolsearch_callToolRead"),
        ("qwen-cli-mcp-client-toolsearch", "mcp__toolsearch__callToolRead"),
        ("copilot-cli", "toolsearch-callToolRead"),
        ("@cline/core", "toolsearch__callToolRead"),
    ],
)
def test_of_a_known_client_it_is_known_how_its_model_calls_our_tools_and_that_it_reads_text(name, callToolRead):  # noqa: N803
    for caller in (legacy(name), legacy(name.upper())):
        assert f"{known_client(caller).prefix}callToolRead" == callToolRead
        assert known_client(caller).reads_text


@pytest.mark.parametrize("name", ["", "some-client", "my-claude-code", "Visual Studio Code"])
def test_of_an_unknown_client_nothing_is_taken_for_granted(name):
    assert (known_client(legacy(name)).prefix, known_client(legacy(name)).reads_text) == ("", False)


@pytest.mark.parametrize("name", ["claude-code", "opencode", "Visual Studio Code", "cursor-vscode", "some-client", ""])
def test_the_list_of_a_client_stays_fixed_whoever_it_is(name):
    assert ClientTable().exposure(legacy(name)) is FIXED
    assert not ClientTable().is_asked


def test_no_list_grows_by_a_search_in_the_protocol_of_2026_or_where_the_transport_keeps_no_sessions():
    stateless = Caller(Grant(LOCAL), Era.LEGACY, session_key=None, client_name="claude-code")
    for caller in (MODERN, stateless):
        assert ClientTable({"*": "expand"}).exposure(caller) is FIXED
        assert ClientTable({"*": "whole"}).exposure(caller) is WHOLE


def test_what_a_user_says_of_a_client_counts():
    table = ClientTable({"Claude-*": "whole", "new-*": "expand"})

    assert table.is_asked
    assert table.exposure(legacy("claude-code")) is WHOLE
    assert table.exposure(legacy("New-Client")) is APPEND
    assert table.exposure(legacy("codex")) is FIXED


def test_the_first_of_a_users_globs_that_fits_counts():
    table = ClientTable({"codex/0.147*": "expand", "codex*": "fixed", "*": "whole"})

    assert table.exposure(legacy("codex", "0.147.2")) is APPEND
    assert table.exposure(legacy("codex", "0.146.0")) is FIXED
    assert table.exposure(legacy("other")) is WHOLE
