"""Opens an address in the browser of the person at this computer, where there is a screen that it could appear on."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping
from urllib.parse import urlsplit

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_REMOTE = ("SSH_CONNECTION", "SSH_TTY")


def has_screen(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a window could open here. *platform* as `sys.platform` has it.

    Without a screen, Python would start a browser for terminals in the middle of the output. Windows and macOS always
    have a screen, but it is not in front of somebody who came by SSH.
    """
    if platform in {"win32", "darwin"}:
        return not any(environment.get(name) for name in _REMOTE)
    return any(environment.get(name) for name in _SCREENS)


def open_page(url: str) -> bool:
    """Open *url* and return whether a browser took it.

    It comes from a server, so only the address of a web page is handed on, and no file or other program's address.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme not in {"https", "http"} or not parts.hostname or not url.isprintable() or " " in url:
        return False
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
