"""The section of the gateway in an ``mcp.json``: what is misspelt in it is told, with what may have been meant."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch.discovery.pass_through import PassThrough
from toolsearch.errors import BadSettingError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.settings import Settings


def read(section: object, **more: object) -> tuple[str, ...]:
    """The warnings."""
    return read_gateway_config({"mcpServers": {"git": {"command": "x"}}, "toolsearch": section, **more}, {}).warnings


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"exposur": {}}, r"toolsearch\.exposur cannot be used: there is no such setting; did you mean exposure\?"),
        ({"rules": {"dney": ["x"]}}, r"toolsearch\.rules\.dney cannot .* did you mean deny\?"),
        ({"servers": {"git": {"callTimeout": 3}}}, r"toolsearch\.servers\.git\.callTimeout .* mean callTimeoutS\?"),
        ({"principals": {"ann": {"alow": []}}}, r"toolsearch\.principals\.ann\.alow .* did you mean allow\?"),
        ({"trust": {"zzz": 1}}, "no such setting; there are firstSeen, changed, suspicious"),
    ],
)
def test_a_misspelt_setting_is_answered_with_the_names_that_it_may_be_a_slip_of(section, told):
    with pytest.raises(BadSettingError, match=told):
        read(section)


def test_names_of_settings_are_taken_as_python_writes_them_too():
    assert read({"http": {"max_sessions": 3}}) == ()


def test_misspelt_servers_and_sections_are_warned_of_with_what_may_have_been_meant():
    one, other = read({"servers": {"gti": {}}}, toolserch={})
    assert "'toolserch'" in one
    assert one.endswith("did you mean toolsearch?")
    assert "'gti'" in other
    assert other.endswith("did you mean git?")


def settings(section: object) -> GatewaySettings:
    return read_gateway_config({"mcpServers": {"git": {"command": "x"}}, "toolsearch": section}, {}).settings


def test_a_slip_within_options_of_the_library_is_answered_like_any_other():
    with pytest.raises(BadSettingError, match=r"toolsearch\.budget\.maxTols cannot be used: .* did you mean maxTools"):
        read({"budget": {"maxTols": 3}})
    with pytest.raises(BadSettingError, match=r"toolsearch\.passThrough\.maxTools cannot be used: .* greater than"):
        read({"passThrough": {"maxTools": -1}})


def test_the_gateway_has_the_settings_of_the_library_with_three_defaults_of_its_own():
    engine, library = settings({}).engine_settings, Settings()

    changed = replace(library.search, answer_tokens=2_000), replace(library.pass_through, slack=0.25)
    assert (engine.search, PassThrough(**asdict(engine.pass_through))) == changed
    assert engine.eviction.max_sessions == 10_000
    assert (engine.index, engine.budget) == (library.index, library.budget)
    assert not settings({"requests": False}).engine_settings.index.requests
    assert settings({"requestsFiles": ["a.jsonl"]}).engine_settings.index.requests_files == (Path("a.jsonl"),)


def test_a_time_is_a_duration():
    read_ = settings({"budget": {"ttlS": "30m"}, "servers": {"*": {"callTimeoutS": "1m30s"}}})

    assert read_.budget.ttl_s == 1_800
    assert read_.of_server("git").call_timeout_s == 90


def test_a_server_has_what_its_entry_says_over_what_holds_for_all():
    read_ = settings({"servers": {"*": {"lazy": False, "callTimeoutS": 5}, "git": {"call_timeout_s": 7}}})

    assert (read_.of_server("git").lazy, read_.of_server("git").call_timeout_s) == (False, 7)
    assert (read_.of_server("other").lazy, read_.of_server("other").call_timeout_s) == (False, 5)


@pytest.mark.parametrize(
    ("entry", "section", "reason"),
    [
        ({"command": "x"}, {"credentials": "per-user"}, "only a server over HTTP"),
        (
            {"url": "https://x.example", "headers": {"authorization": "Bearer x"}},
            {"credentials": "per-user"},
            "Authoriz",
        ),
        (
            {"url": "https://x.example", "headers": {"Authorization": "${claim:key}"}},
            {"credentials": "exchange"},
            "Auth",
        ),
        ({"url": "https://x.example"}, {"credentials": "exchange"}, "wants oauth with a clientId and the issuer"),
        ({"url": "https://x.example"}, {"credentials": "exchange", "oauth": {"clientId": "x"}}, "and the issuer"),
    ],
)
def test_a_server_that_does_not_fit_the_credentials_that_it_is_to_get_is_refused(entry, section, reason):
    document = {"mcpServers": {"s": entry}, "toolsearch": {"servers": {"s": section}}}
    config = read_gateway_config(document, {})

    assert config.upstreams == ()
    assert reason in config.refused[0].reason


@pytest.mark.parametrize("http", [{"allowAnonymous": True}, {"allowedHosts": ["tools.example"]}])
def test_nobody_logs_in_for_all_strangers_who_are_one_local_user(http):
    """Each principal has its own login. Without principals, everybody would use the login of whoever was first."""
    section: dict[str, Any] = {"http": http, "servers": {"*": {"credentials": "per-user"}}}
    document = {"mcpServers": {"s": {"url": "https://x.example"}}, "toolsearch": section}
    (refused,) = read_gateway_config(document, {}).refused
    assert "nobody says who they are" in refused.reason

    section["principals"] = {"alice": {"token": "${ALICE}"}}
    assert read_gateway_config(document, {"ALICE": "a-long-token-of-alice"}).refused == ()


def test_the_credentials_of_a_server_are_one_of_three():
    section = {"servers": {"s": {"credentials": "per-users"}}}
    with pytest.raises(BadSettingError, match=r"toolsearch\.servers\.s\.credentials"):
        read_gateway_config({"mcpServers": {"s": {"url": "https://x.example"}}, "toolsearch": section}, {})
