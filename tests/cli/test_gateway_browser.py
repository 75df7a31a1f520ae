"""Opening a login's address: only where somebody could see it, and only if it is a web page's."""

import webbrowser

import pytest

from toolsearch.cli.gateway import has_screen, open_page


@pytest.mark.parametrize(
    ("platform", "environment", "has_one"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"BROWSER": "w3m"}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "a 1 b 22"}, True),  # the screen is forwarded
        ("freebsd14", {}, False),
        ("darwin", {}, True),
        ("darwin", {"SSH_CONNECTION": "a 1 b 22"}, False),
        ("win32", {}, True),
        ("win32", {"SSH_TTY": "x"}, False),
    ],
)
def test_there_is_a_screen_where_a_window_could_open(platform, environment, has_one):
    assert has_screen(environment, platform) is has_one


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The addresses that a browser was given."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    return opened


def test_the_address_of_a_page_is_opened(opened):
    assert open_page("https://login.example/authorize?client_id=a&state=b")
    assert opened == ["https://login.example/authorize?client_id=a&state=b"]


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "--new-window",
        "",
        "https://",
        "https://a b",
        "http://[",
        "https://a\n",
    ],
)
def test_what_is_no_address_of_a_page_is_not_handed_on(opened, url):
    assert not open_page(url)
    assert opened == []


def test_a_browser_that_cannot_be_started_is_none(monkeypatch):
    def fail(_: str) -> bool:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open", fail)

    assert not open_page("https://login.example/")
