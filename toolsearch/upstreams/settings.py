"""How one server is treated, whoever uses it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from toolsearch.setting_sections import SettingsSection
from toolsearch.upstreams.config import McpServer


class ServerSettings(SettingsSection):
    """How one server is treated; the entry ``*`` gives the defaults of all."""

    connect_timeout_s: PositiveFloat = 30.0
    call_timeout_s: PositiveFloat = 60.0
    ask_timeout_s: PositiveFloat = Field(
        default=300.0, description="For a person to answer what the server asks in a call, whose own time stands still."
    )
    max_running: PositiveInt = Field(default=16, description="Requests that it is sent at the same time.")
    max_waiting: NonNegativeInt = Field(default=64, description="Requests that wait for that; more are refused.")
    lazy: bool = Field(
        default=True,
        description="Start it when a search finds a tool of it first or it is called, if it is known from last time.",
    )
    listing_ttl_s: PositiveFloat | None = Field(
        default=300.0,  # so long may a change in silence stay unnoticed; a listing in 5 minutes costs next to nothing
        description="List it anew after that long at the latest, or sooner if it says so; None: only as it says.",
    )
    login: bool = Field(default=True, description="Log in with OAuth where the server asks for it.")


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """One server: how it is reached, how it is treated, and where what is known of it is kept; None: nowhere.

    relays  whether MCP clients stand behind the requests, who can be asked, and want prompts and resources as well
    """

    server: McpServer
    treated: ServerSettings
    state_folder: Path | None = None
    relays: bool = True

    @property
    def name(self) -> str:
        return self.server.name
