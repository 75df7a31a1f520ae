"""Serves the client of a plain ``toolsearch gateway`` before anything heavy is imported.

The background process of the configuration serves the client. If there can be none, the client is answered at once,
while this process loads the gateway.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolsearch.gateway.door import Door

NO_DAEMON = "--no-daemon"
_VALUED = ("--config", "--log-level")
_opened: list[Door] = []  # at most one door, since a process has one stdin


def serve_for(arguments: Sequence[str]) -> bool:
    """Serve the client if *arguments* are those of a plain gateway over stdio. Returns whether it was served.

    If not, its door may be open already; else `opened` opens it later.
    """
    if arguments[:1] != ["gateway"]:
        return False
    given: dict[str, str] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in _VALUED:
            given[name] = value if equals else next(rest, "")
        elif argument == NO_DAEMON:
            given[NO_DAEMON] = ""
        else:
            return False
    config = Path(given["--config"]) if "--config" in given else own_config()
    with suppress(OSError):  # the command reports the error later, where errors are printed
        if NO_DAEMON in given:
            opened(config)
        elif config.is_file():
            from toolsearch.gateway.daemon.relay import serve

            door = serve(config, given.get("--log-level", "warning"))
            if door is None:
                return True
            _opened.append(door)
    return False


def opened(config: Path | None) -> Door | None:
    """The door of the gateway of *config*, where None means its own file. None if there is no such file."""
    if not _opened:
        from toolsearch.gateway.door import Door

        path = own_config() if config is None else config
        if not path.is_file():
            return None
        _opened.append(Door(greets=path))
    return _opened[0]


def own_config() -> Path:
    """The gateway's own file, which need not exist. `import` writes it, and other commands read it."""
    import platformdirs

    return platformdirs.user_config_path("toolsearch", appauthor=False) / "mcp.json"
