"""The section of the gateway in an ``mcp.json``: what is misspelt in it is told, with what may have been meant."""

import pytest

from toolsearch.errors import BadSettingError
from toolsearch.gateway.settings import read_gateway_config


def read(section: object, **more: object) -> tuple[str, ...]:
    """The warnings."""
    return read_gateway_config({"mcpServers": {"git": {"command": "x"}}, "toolsearch": section, **more}, {}).warnings


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"exposur": {}}, r"toolsearch\.exposur cannot be used: there is no such setting; did you mean exposure\?"),
        ({"rules": {"dney": ["x"]}}, r"toolsearch\.rules\.dney cannot .* did you mean deny\?"),
        ({"servers": {"git": {"callTimeout": 3}}}, r"toolsearch\.servers\.git\.callTimeout .* mean callTimeoutS, "),
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
