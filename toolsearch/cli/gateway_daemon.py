"""``toolsearch gateway reload`` and ``stop``, for the background processes of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.options import ConfigOption, config_file
from toolsearch.cli.output import line, stdout, warn
from toolsearch.errors import BadSettingError, ServerUnavailableError, ToolSearchError

if TYPE_CHECKING:
    from toolsearch.gateway.settings import GatewaySettings
    from toolsearch.tools.json_types import Json, JsonObject


def reload(*, config: ConfigOption = None) -> int:
    """Make the background processes read their file at once, and report the outcome. Exit code 1 if none runs."""
    processes = processes_of(config)
    for process in processes:
        if problem := asked(process, "reload").get("problem"):
            raise BadSettingError(f"process {process['pid']}: {problem}")
        stdout().print(line(f"Process {process['pid']} now uses {process['config']}."), soft_wrap=True)
    return _outcome(processes)


def stop(*, config: ConfigOption = None) -> int:
    """End the background processes. The next request of a connected client starts a new one.

    Exit code 1 if none runs.
    """
    processes = processes_of(config)
    for process in processes:
        asked(process, "stop")
        stdout().print(line(f"Process {process['pid']} ends."), soft_wrap=True)
    return _outcome(processes)


def clients_in_words(process: dict[str, Any]) -> str:
    """The clients of a background process, and the path of its log."""
    clients = [
        f"{each['name'] or 'unknown'} {each['version']}".strip() + f" ({each['pid']})" for each in process["clients"]
    ]
    count = f"{len(clients)} client{'s' if len(clients) > 1 else ''}"
    said = f"{count}: {', '.join(clients)}." if clients else "No clients."
    return f"{said} It logs to {process['log']}."


def settings_of(config: Path | None) -> GatewaySettings:
    """The settings in the file; the defaults if the file is missing, or cannot be used now."""
    from toolsearch.gateway.settings import GatewaySettings

    if config is None and not own_config().is_file():
        return GatewaySettings()
    file = config_file(config)
    try:
        return file.read().settings
    except ToolSearchError as error:
        if not file.path.is_file():
            raise
        warn(f"gateways with their own stateDir cannot be found, because the file cannot be used: {error}")
        return GatewaySettings()


def processes_of(config: Path | None) -> list[dict[str, Any]]:
    """The background processes of the configuration: one for each environment of clients."""
    from toolsearch.gateway.reports.commands import running_gateways

    path = str((config or own_config()).absolute())
    return [each for each in running_gateways(settings_of(config).state_folder) if each.get("config") == path]


def asked(process: dict[str, Any], what: str, **more: Json) -> JsonObject:
    """The answer of a background process that is asked to do *what*."""
    from toolsearch.gateway.daemon import address

    try:
        return address.asked(Path(process["address"].removeprefix("unix:")), what, **more)
    except (OSError, address.NoDaemonError) as error:
        raise ServerUnavailableError(f"process {process['pid']} does not answer: {error}") from error


def _outcome(processes: list[dict[str, Any]]) -> int:
    if processes:
        return ExitCode.OK
    stdout().print("No background process runs.")
    return ExitCode.NOTHING
