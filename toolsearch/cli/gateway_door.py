"""Opens the door of ``toolsearch gateway`` before anything heavy is imported: its client is answered at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolsearch.gateway.door import Door

_VALUED = ("--config", "--log-level")
_opened: list[Door] = []  # at most one door, since a process has one stdin


def open_for(arguments: Sequence[str]) -> None:
    """Open the door if *arguments* are those of a plain gateway over stdio. Otherwise `opened` opens it later."""
    if arguments[:1] != ["gateway"]:
        return
    config: Path | None = None
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name not in _VALUED:
            return
        value = value if equals else next(rest, "")
        config = Path(value) if name == "--config" else config
    with suppress(OSError):  # the command reports the error later, where errors are printed
        opened(config)


def opened(config: Path | None) -> Door | None:
    """The door of the gateway of *config*, where None means its own file. None if there is no such file."""
    if not _opened:
        from toolsearch.gateway.door import Door

        path = own_config() if config is None else config
        if not path.is_file():
            return None
        _opened.append(Door.of(path))
    return _opened[0]


def own_config() -> Path:
    """The gateway's own file, where `import` puts the servers and other commands look for them; it need not exist."""
    import platformdirs

    return platformdirs.user_config_path("toolsearch", appauthor=False) / "mcp.json"
