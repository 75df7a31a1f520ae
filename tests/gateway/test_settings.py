"""The section of the gateway in an ``mcp.json``: what is misspelt in it is told, with what may have been meant."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from toolsearch.discovery.pass_through import PassThrough
from toolsearch.errors import BadSettingError
from toolsearch.gateway.settings import GatewaySettings, read_gateway_config
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
    assert read({"servers": {"gti": {}}}, toolserch={}) == (
        "mcpServers: left 'toolserch' alone, it means nothing here; did you mean toolsearch?",
        "mcpServers: settings for 'gti', which is no server; did you mean git?",
    )


def settings(section: object) -> GatewaySettings:
    return read_gateway_config({"mcpServers": {"git": {"command": "x"}}, "toolsearch": section}, {}).settings


OLD_AND_CURRENT = [
    ("exposure", "limit", 3, "search", "limit"),
    ("exposure", "maxLimit", 30, "search", "maxLimit"),
    ("exposure", "answerTokens", 300, "search", "answerTokens"),
    ("exposure", "sessionTools", 3, "budget", "maxTools"),
    ("exposure", "sessionTokens", 300, "budget", "maxTokens"),
    ("exposure", "passThroughTools", 3, "passThrough", "maxTools"),
    ("exposure", "passThroughTokens", 300, "passThrough", "maxTokens"),
    ("exposure", "pass_through_tokens", 300, "passThrough", "maxTokens"),
    ("limits", "tools", {"git": 1}, "limits", "perToolOverrides"),
]


@pytest.mark.parametrize(("part", "name", "value", "new_part", "new_name"), OLD_AND_CURRENT)
def test_a_name_of_0_1_0_is_read_as_the_name_of_now_and_that_is_warned_of(part, name, value, new_part, new_name):
    old, current = {part: {name: value}}, {new_part: {new_name: value}}

    assert settings(old) == settings(current) != settings({})
    [warning] = read(old)
    assert warning.endswith(f" is called toolsearch.{new_part}.{new_name} now")
    assert read(current) == ()


def test_the_other_settings_of_a_section_stay_where_they_are():
    read_ = settings({"exposure": {"limit": 3, "pins": ["git__log"]}, "search": {"maxLimit": 7}})

    assert (read_.search.limit, read_.search.max_limit, read_.exposure.pins) == (3, 7, ("git__log",))


def test_an_old_name_beside_the_name_of_now_is_refused():
    both = {"exposure": {"sessionTools": 3}, "budget": {"max_tools": 4}}

    assert settings({"exposure": {"passThroughTools": 3}, "pass_through": {"slack": 0}}).pass_through.slack == 0
    with pytest.raises(
        BadSettingError, match=r"toolsearch\.exposure\.sessionTools is called toolsearch\.budget\.maxTools"
    ):
        read(both)


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
    read_ = settings({"http": {"sessionIdleS": "30m"}, "servers": {"*": {"callTimeoutS": "1m30s"}}})

    assert read_.http.session_idle_s == 1_800
    assert read_.of_server("git").call_timeout_s == 90


def test_a_server_has_what_its_entry_says_over_what_holds_for_all():
    read_ = settings({"servers": {"*": {"lazy": False, "callTimeoutS": 5}, "git": {"call_timeout_s": 7}}})

    assert (read_.of_server("git").lazy, read_.of_server("git").call_timeout_s) == (False, 7)
    assert (read_.of_server("other").lazy, read_.of_server("other").call_timeout_s) == (False, 5)
