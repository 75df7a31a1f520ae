"""Addresses on the command line."""

from __future__ import annotations

from toolsearch.errors import BadSettingError

_LAST_PORT = 65_535


def read_address(text: str, option: str) -> tuple[str, int]:
    """Read ``HOST:PORT``, ``[::1]:PORT`` or ``:PORT``, which is loopback. Raises BadSettingError, naming *option*."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LAST_PORT:
        raise BadSettingError(f"{option} wants HOST:PORT, such as 127.0.0.1:8080, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)
